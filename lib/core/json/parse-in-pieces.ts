import type { Buffer } from 'node:buffer'
import {
  COMMA,
  endOfValue,
  type MemberText,
  membersOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipSpace,
} from './json-text.ts'
import { setMember } from './json-values.ts'

/** The bytes that are parsed together. */
const PIECE = 32 * 1024
/** V8 takes the memory of a longer string from the system each time, which can last longer than parsing the text. */
const LARGE = 64 * 1024

/**
 * Parses a JSON text as `JSON.parse` does. Of a large one, the long lists that its members have, as a conversation is, are
 * parsed some items at a time. Of a member that stands twice, either may be returned.
 *
 * @throws {SyntaxError} if the text is not JSON.
 */
export function parseInPieces(raw: Buffer): unknown {
  const isLarge = raw.length > LARGE && raw[skipSpace(raw, 0)] === OPEN_BRACE
  const lists = isLarge ? membersOf(raw).filter((member) => isLongList(raw, member)) : []
  const cuts = lists.map((list) => cutsIn(raw, list))
  // A large item takes such a string by itself: nothing is gained.
  if (lists.length === 0 || cuts.includes(undefined)) return JSON.parse(raw.toString())
  let rest = ''
  let from = 0
  for (const { valueStart, valueEnd } of lists) {
    rest += raw.toString('utf8', from, valueStart + 1)
    from = valueEnd - 1
  }
  const value = JSON.parse(rest + raw.toString('utf8', from))
  for (const [i, list] of lists.entries()) setMember(value, list.key, itemsOf(raw, list, cuts[i] ?? []))
  return value
}

function isLongList(raw: Buffer, { valueStart, valueEnd }: MemberText): boolean {
  if (raw[valueStart] !== OPEN_BRACKET || valueEnd - valueStart <= PIECE) return false
  return skipSpace(raw, valueStart + 1) < valueEnd - 1
}

/** Returns the offsets of the commas between the pieces of a list; undefined if an item is large. */
function cutsIn(raw: Buffer, { valueStart, valueEnd }: MemberText): number[] | undefined {
  const cuts: number[] = []
  let from = valueStart + 1
  for (let at = from; ; ) {
    const end = skipSpace(raw, endOfValue(raw, skipSpace(raw, at)))
    if (end - at > LARGE) return undefined
    if (end >= valueEnd - 1 || raw[end] !== COMMA) return cuts
    at = end + 1
    if (at - from > PIECE) {
      cuts.push(end)
      from = at
    }
  }
}

function itemsOf(raw: Buffer, { valueStart, valueEnd }: MemberText, cuts: readonly number[]): unknown[] {
  let from = valueStart + 1
  const pieces = [...cuts, valueEnd - 1].map((to) => {
    const piece: unknown[] = JSON.parse(`[${raw.toString('utf8', from, to)}]`)
    if (piece.length === 0) throw new SyntaxError('there is a comma without an item')
    from = to + 1
    return piece
  })
  return ([] as unknown[]).concat(...pieces)
}
