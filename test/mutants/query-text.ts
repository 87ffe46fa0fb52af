import type { Edit } from './edit.ts'

/** What is exchanged in SQL and Lua, which stand in strings. */
const EXCHANGES: readonly (readonly [from: RegExp, to: string])[] = [
  [/ and /g, ' or '],
  [/ or /g, ' and '],
  [/ >= /g, ' > '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ < /g, ' <= '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ <> /g, ' = '],
  [/ == /g, ' ~= '],
  [/ ~= /g, ' == '],
  [/ is not null\b/g, ' is null'],
  [/ not exists\b/g, ' exists'],
  [/ desc\b/g, ' asc'],
  [/ for update( of \w+)?/g, ''],
  [/ skip locked\b/g, ''],
  [/\bleast\(/g, 'greatest('],
  [/\bgreatest\(/g, 'least('],
]

/** The changes to a query that begins at `start` of its file. */
export function* queryEdits(start: number, query: string): Iterable<Edit> {
  for (const [from, to] of EXCHANGES) {
    for (const { index, 0: text } of query.matchAll(from)) {
      if (isInComment(query, index)) continue
      yield { operator: 'query', start: start + index, end: start + index + text.length, text: to }
    }
  }
}

/** Comments have lines of their own. */
function isInComment(query: string, index: number): boolean {
  return /^\s*--/.test(query.slice(query.lastIndexOf('\n', index) + 1, index))
}
