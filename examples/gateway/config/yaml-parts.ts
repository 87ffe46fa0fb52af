import { type ListText, restOf } from './list-texts.ts'

/** The characters that are parsed together: what the parser keeps of so many is garbage before the collector has moved it. */
const PART = 4 * 1024
/** The beginning of a list that may be long, as a block at the top of the file. */
const LIST = /(?<![^\n])(accounts|keys):(?:[ \t\r]*(?:#[^\n]*)?\n)+(?= *- )/g
/** An anchor, an alias or a directive: a part may need another one. Texts that look like these do no harm. */
const RELATION = /(?<=[\s[{,:])[&*]|^%/m

/**
 * Finds the lists of a large YAML text whose items can be parsed some at a time. Returns none where an item may need another
 * part of the text.
 */
export function listsInYaml(text: string): ListText[] {
  if (text.length <= PART || RELATION.test(text)) return []
  return Array.from(text.matchAll(LIST), ({ 0: head, 1: name = '', index }) => {
    const begin = index + head.length
    return { name, begin, end: next(/\n(?=[^\s#-])/g, text, begin) }
  })
}

/**
 * Parses a YAML text some items of its lists at a time, because the parser keeps ten times the size of what it parses.
 * Returns undefined if the text has faults, or a list is not what it looks like: it has to be parsed as a whole then.
 *
 * @param parse parses one document.
 */
export function parseInParts(
  text: string,
  lists: readonly ListText[],
  parse: (part: string) => unknown,
): object | undefined {
  if (lists.length === 0) return undefined
  try {
    const rest = parse(restOf(text, lists)) as Record<string, unknown>
    for (const { name, begin, end } of lists) {
      const items = rest[name] === null ? itemsOf(text, begin, end, parse) : undefined
      if (!items) return undefined
      rest[name] = items
    }
    return rest
  } catch {
    return undefined
  }
}

function itemsOf(
  text: string,
  begin: number,
  end: number,
  parse: (part: string) => unknown,
): unknown[] | undefined {
  const indent = text.slice(begin, text.indexOf('-', begin))
  const items: unknown[] = []
  for (let from = begin; from < end; ) {
    const to = Math.min(end, next(new RegExp(`\\n(?=${indent}- )`, 'g'), text, from + PART))
    const part = parse(text.slice(from, to))
    if (!Array.isArray(part)) return undefined
    for (const item of part) items.push(item)
    from = to
  }
  return items
}

/** Returns where the line behind the next match begins, or the end of the text. */
function next(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  const found = pattern.exec(text)
  return found ? found.index + 1 : text.length
}
