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

/**
 * The bytes that are parsed together. V8 takes the memory of a string of 128 KB or more from the system each time, which
 * can last longer than parsing the text.
 */
const PIECE = 32 * 1024

/**
 * Parses a JSON text as `JSON.parse` does, but some items at a time of the long lists that its members have, as a
 * conversation is. Of a member that stands twice, either may be returned.
 *
 * @throws {SyntaxError} if the text is not JSON.
 */
export function parseInPieces(raw: Buffer): unknown {
  const isObject = raw[skipSpace(raw, 0)] === OPEN_BRACE
  const lists =
    isObject && raw.length > PIECE ? membersOf(raw).filter((member) => isLongList(raw, member)) : []
  if (lists.length === 0) return JSON.parse(raw.toString())
  let rest = ''
  let from = 0
  for (const { valueStart, valueEnd } of lists) {
    rest += raw.toString('utf8', from, valueStart + 1)
    from = valueEnd - 1
  }
  const value = JSON.parse(rest + raw.toString('utf8', from))
  for (const list of lists) setMember(value, list.key, itemsOf(raw, list))
  return value
}

function isLongList(raw: Buffer, { valueStart, valueEnd }: MemberText): boolean {
  if (raw[valueStart] !== OPEN_BRACKET || valueEnd - valueStart <= PIECE) return false
  return skipSpace(raw, valueStart + 1) < valueEnd - 1
}

function itemsOf(raw: Buffer, { valueStart, valueEnd }: MemberText): unknown[] {
  const items: unknown[] = []
  const end = valueEnd - 1
  for (let from = valueStart + 1; ; ) {
    const to = endOfPiece(raw, from, end)
    const text = raw.toString('utf8', from, to)
    // Brackets would copy the text of a long item.
    const piece: unknown[] = to - from > 2 * PIECE ? [JSON.parse(text)] : JSON.parse(`[${text}]`)
    if (piece.length === 0) throw new SyntaxError('there is a comma without an item')
    for (const item of piece) items.push(item)
    if (to === end) return items
    from = to + 1
  }
}

/** Returns the offset of the comma behind a piece, which is one long item or several shorter ones; the end of the list if it is the last. */
function endOfPiece(raw: Buffer, from: number, end: number): number {
  for (let at = from; ; ) {
    const behind = skipSpace(raw, endOfValue(raw, skipSpace(raw, at)))
    if (at > from && behind - at > PIECE) return at - 1
    if (behind >= end || raw[behind] !== COMMA) return end
    if (behind - from >= PIECE) return behind
    at = behind + 1
  }
}
