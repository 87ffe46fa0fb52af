const PREFIX = 'req_'
const TIME_END = PREFIX.length + 10
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
/** The last time that a request id can contain: ten characters of five bits, in milliseconds. */
const LAST_TIME = 32 ** 10 - 1

/** Returns the least request id that can be made at a time or later. */
export function firstIdOf(time: number): string {
  let rest = Math.min(Math.max(0, Math.ceil(time)), LAST_TIME)
  let digits = ''
  for (let i = PREFIX.length; i < TIME_END; i++) {
    digits = ALPHABET.charAt(rest % 32) + digits
    rest = Math.floor(rest / 32)
  }
  return PREFIX + digits
}

/** Before all request ids of a gateway. Other ids, such as `req_0001`, may sort before it, and hold no time. */
export const FIRST_ID = firstIdOf(Date.UTC(2020, 0))

/** Returns the last time whose least id is not behind an id: that of the id, or for one of another kind, where it sorts. */
export function placeOf(id: string): number {
  let [from, to] = [0, LAST_TIME]
  while (from < to) {
    const middle = Math.ceil((from + to) / 2)
    if (firstIdOf(middle) <= id) from = middle
    else to = middle - 1
  }
  return from
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
