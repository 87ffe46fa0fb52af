import type { Node } from 'jsonc-parser'
import type { Node as YamlNode } from 'yaml'

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
  const { isAlias, isMap, isNode, isScalar, isSeq, parseDocument } = await import('yaml')
  const document = parseDocument(text, { merge: true })
  return placeOfYaml(document.contents, 0)

  function placeOfYaml(node: unknown, at: number): Place {
    const below = new Map<string, Place>()
    if (isAlias(node)) return placeOfYaml(node.resolve(document), at)
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.value) : undefined
        if (name !== undefined) below.set(name, placeOfYaml(value, startOf(key) ?? at))
      }
    }
    if (isSeq(node)) {
      for (const [index, item] of node.items.entries())
        below.set(String(index), placeOfYaml(item, startOf(item) ?? at))
    }
    return { at, below }
  }

  function startOf(node: unknown): number | undefined {
    return isNode(node) ? (node as YamlNode).range?.[0] : undefined
  }
}
