import { randomFillSync } from 'node:crypto'

const ALPHABET = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz')
const RANDOM_BYTES = 4096
const TIME_START = 'req_'.length
const TIME_END = TIME_START + 10
const SEQUENCE_END = TIME_END + 2
const LENGTH = SEQUENCE_END + 14
/** A sequence begins somewhere in the lower half of its two characters, so that the upper half is free for a millisecond. */
const FIRST_MASK = 32 * 16 - 1
const MASK = 32 * 32 - 1
/** When the time is further back than this, the clock was set back. */
const OTHER_TIME_MS = 1000
/** What an id takes at most. */
const RANDOM_BYTES_PER_ID = 2 + LENGTH - SEQUENCE_END

const random = Buffer.allocUnsafe(RANDOM_BYTES)
let used = RANDOM_BYTES
/** The last id. The next one is written over it, so that only one string is created per id. */
const id = Buffer.alloc(LENGTH, 'req_')
let lastTime = -1
let newestTime = -1
let sequence = 0

/**
 * Returns a new request id: `req_`, ten characters of the time in milliseconds, two that count within the millisecond, from
 * a random number on, and fourteen random ones (70 bits). Ids sort by time, which keeps the call log's index compact, and
 * those of a process in the order in which they were made, so that a list has one order.
 */
export function newRequestId(now: number = Date.now()): string {
  if (used + RANDOM_BYTES_PER_ID > RANDOM_BYTES) {
    randomFillSync(random)
    used = 0
  }
  if (now !== lastTime) {
    lastTime = now
    let rest = now
    for (let i = TIME_END - 1; i >= TIME_START; i--) {
      id[i] = ALPHABET[rest % 32] as number
      rest = Math.floor(rest / 32)
    }
  }
  // Some ids are of a time close by, such as those of events. Behind them, a millisecond that was begun is counted on.
  if (now > newestTime || now < newestTime - OTHER_TIME_MS) {
    newestTime = now
    sequence = (((random[used++] as number) << 8) | (random[used++] as number)) & FIRST_MASK
  } else sequence = (sequence + 1) & MASK
  id[TIME_END] = ALPHABET[sequence >> 5] as number
  id[TIME_END + 1] = ALPHABET[sequence & 31] as number
  for (let i = SEQUENCE_END; i < LENGTH; i++) id[i] = ALPHABET[(random[used++] as number) & 31] as number
  return id.toString('latin1')
}

/** Whether a text has the form of a request id. */
export function isRequestId(text: string): boolean {
  return /^req_[0-9a-hjkmnp-tv-z]{26}$/.test(text)
}
