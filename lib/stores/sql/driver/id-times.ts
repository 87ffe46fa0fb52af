import { newRequestId } from '../../../core/call/index.ts'

const PREFIX = 'req_'
const TIME_END = PREFIX.length + 10
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
/** The last time that a request id can contain: ten characters of five bits, in milliseconds. */
const LAST_TIME = 32 ** 10 - 1

/** Returns the least request id that can be made at a time or later. */
export function firstIdOf(time: number): string {
  return newRequestId(Math.min(Math.max(0, Math.ceil(time)), LAST_TIME)).slice(0, TIME_END)
}

/** Returns the time of a request id, or of the beginning of one, in milliseconds since the epoch; undefined if it has none. */
export function timeOfId(id: string): number | undefined {
  if (!id.startsWith(PREFIX) || id.length < TIME_END) return undefined
  let time = 0
  for (const character of id.slice(PREFIX.length, TIME_END)) {
    const digit = ALPHABET.indexOf(character)
    if (digit === -1) return undefined
    time = time * 32 + digit
  }
  return time
}
