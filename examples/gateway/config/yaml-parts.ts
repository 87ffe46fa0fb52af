/** The characters that are parsed together: what the parser keeps of so many is garbage before the collector has moved it. */
const PART = 4 * 1024
/** The beginning of a list that may be long, as a block at the top of the file, and the indentation of its items. */
const LIST = /(?<![^\n])(accounts|keys):(?:[ \t\r]*(?:#[^\n]*)?\n)+(?=( *)- )/g
/** An anchor, an alias or a directive: a part may need another one. Texts that look like these do no harm. */
const RELATION = /(?<=[\s[{,:])[&*]|^%/m

/**
 * Parses a large YAML text some items of `accounts` and `keys` at a time, because the parser keeps ten times the size of
 * what it parses. Returns undefined if the text has faults, or cannot be divided: it has to be parsed as a whole then.
 *
 * @param parse parses one document.
 */
export function parseInParts(text: string, parse: (part: string) => unknown): object | undefined {
  if (text.length <= PART || RELATION.test(text)) return undefined
  try {
    return joined(text, parse)
  } catch {
    return undefined
  }
}

function joined(text: string, parse: (part: string) => unknown): object | undefined {
  const lists: Record<string, unknown[]> = {}
  let rest = ''
  let at = 0
  for (const found of text.matchAll(LIST)) {
    const [head, name = '', indent = ''] = found
    const begin = found.index + head.length
    const end = next(/\n(?=[^\s#-])/g, text, begin)
    const items: unknown[] = []
    for (let from = begin; from < end; ) {
      const to = Math.min(end, next(new RegExp(`\\n(?=${indent}- )`, 'g'), text, from + PART))
      const part = parse(text.slice(from, to))
      if (!Array.isArray(part)) return undefined
      for (const item of part) items.push(item)
      from = to
    }
    lists[name] = items
    rest += text.slice(at, begin)
    at = end
  }
  const top = parse(rest + text.slice(at)) as Record<string, unknown> | undefined
  const names = Object.keys(lists)
  const isWhole = names.length > 0 && names.every((name) => top?.[name] === null)
  return isWhole ? { ...top, ...lists } : undefined
}

/** Returns where the line behind the next match begins, or the end of the text. */
function next(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  const found = pattern.exec(text)
  return found ? found.index + 1 : text.length
}
