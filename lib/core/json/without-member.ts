import { Buffer } from 'node:buffer'
import { COLON, QUOTE } from './bytes.ts'
import { endOfString } from './json-text.ts'

const SPACES = new Set(Buffer.from(' \t\r\n'))
const OPENING = new Set(Buffer.from('[{'))
const CLOSING = new Set(Buffer.from(']}'))

/** Returns a JSON text with null for each list or object that is a member of this name, without parsing it. */
export function withoutMember(raw: Buffer, name: string): Buffer {
  const quoted = Buffer.from(JSON.stringify(name))
  const kept: Buffer[] = []
  let from = 0
  for (let at = raw.indexOf(QUOTE); at >= 0; at = raw.indexOf(QUOTE, at)) {
    const end = endOfString(raw, at)
    const isNamed = end - at === quoted.length && quoted.compare(raw, at, end) === 0
    at = end
    if (!isNamed) continue
    const colon = behindSpaces(raw, end)
    const value = behindSpaces(raw, colon + 1)
    if (raw[colon] !== COLON || !OPENING.has(raw[value] as number)) continue
    kept.push(raw.subarray(from, value), Buffer.from('null'))
    at = endOfContainer(raw, value)
    from = at
  }
  return from === 0 ? raw : Buffer.concat([...kept, raw.subarray(from)])
}

function behindSpaces(raw: Buffer, start: number): number {
  let at = start
  while (SPACES.has(raw[at] as number)) at++
  return at
}

/** Returns the offset behind the list or object that begins at `start`; the length of the text if it does not end. */
function endOfContainer(raw: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < raw.length; ) {
    const byte = raw[at] as number
    at = byte === QUOTE ? endOfString(raw, at) : at + 1
    if (OPENING.has(byte)) depth++
    else if (CLOSING.has(byte) && --depth === 0) return at
  }
  return raw.length
}
