import type { Event } from 'js-yaml'
import type { Node } from 'jsonc-parser'

/** A value in the text of a config file: where it, or the name of the member that has it, begins. */
export interface Place {
  readonly at: number
  /** The values below it, by the name of a member or the index of an item. */
  readonly below: ReadonlyMap<string, Place>
}

/**
 * Returns the place that the path at the beginning of a fault names, such as `lines[2].baseUrl: must be …`. Of a member
 * that is missing, it is the place of the object. Returns undefined if the fault names nothing in the file.
 */
export function placeOf(fault: string, top: Place): Place | undefined {
  if (fault.startsWith('(top level)')) return top
  let place = top
  let rest = fault
  while (!rest.startsWith(': ')) {
    const found = longestName(rest, place)
    if (!found) break
    place = found.place
    rest = found.rest
  }
  return place === top ? undefined : place
}

/** Finds the member or item that a path begins with. Names can have dots and brackets: the longest one is meant. */
function longestName(path: string, { below }: Place): { place: Place; rest: string } | undefined {
  let longest: { place: Place; rest: string } | undefined
  for (const [name, place] of below) {
    const form = [name, `.${name}`, `[${name}]`].find((text) => path.startsWith(text))
    const rest = path.slice(form?.length)
    const isWhole = form !== undefined && /^([.[]|: )/.test(rest)
    if (isWhole && (!longest || rest.length < longest.rest.length)) longest = { place, rest }
  }
  return longest
}

/** Names the line and the column of a place, each from 1. */
export function lineAndColumn(text: string, at: number): string {
  const before = text.slice(0, at).split(/\r\n?|\n/)
  return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`
}

/** Reads where the values of a JSON text are. */
export async function placesInJson(text: string): Promise<Place> {
  const { parseTree } = await import('jsonc-parser')
  const top = parseTree(text)
  return top ? placeOfJson(top) : { at: 0, below: new Map() }
}

function placeOfJson(node: Node, at = node.offset): Place {
  const below = new Map<string, Place>()
  for (const [index, child] of (node.children ?? []).entries()) {
    const [name, value] = node.type === 'object' ? (child.children ?? []) : []
    if (name && value) below.set(name.value, placeOfJson(value, name.offset))
    else if (node.type === 'array') below.set(String(index), placeOfJson(child))
  }
  return { at, below }
}

/** Reads where the values of a YAML text are. An alias is where its anchor is. */
export async function placesInYaml(text: string): Promise<Place> {
  const { EVENT_ID, getScalarValue, parseEvents, SCALAR_STYLE } = await import('js-yaml')
  const anchored = new Map<string, Place>()
  const [, ...events] = parseEvents(text, {})
  let next = 0
  return events.length > 0 ? placeOfNext() : { at: 0, below: new Map() }

  /** @param member where the member begins that has the next value. */
  function placeOfNext(member?: number): Place {
    const event = events[next++] as Event
    const below = new Map<string, Place>()
    const place = { at: member ?? startOf(event), below }
    if (event.type === EVENT_ID.ALIAS) return { ...place, below: anchored.get(nameIn(event))?.below ?? below }
    if ('anchorStart' in event && event.anchorStart >= 0) anchored.set(nameIn(event), place)
    const isMapping = event.type === EVENT_ID.MAPPING
    if (isMapping || event.type === EVENT_ID.SEQUENCE) {
      while (events[next]?.type !== EVENT_ID.POP) {
        const key = isMapping ? (events[next] as Event) : undefined
        const at = key && placeOfNext().at
        const name = key?.type === EVENT_ID.SCALAR ? getScalarValue(text, key) : String(below.size)
        below.set(name, placeOfNext(at))
      }
      next++
    }
    return place
  }

  function nameIn({ anchorStart, anchorEnd }: { anchorStart: number; anchorEnd: number }): string {
    return text.slice(anchorStart, anchorEnd)
  }

  function startOf(event: Event): number {
    if ('start' in event) return event.start
    if (!('valueStart' in event)) return 'anchorStart' in event ? event.anchorStart : 0
    const { style, valueStart } = event
    const isQuoted = style === SCALAR_STYLE.SINGLE_QUOTED || style === SCALAR_STYLE.DOUBLE_QUOTED
    return isQuoted ? valueStart - 1 : valueStart
  }
}
