import { randomFillSync } from 'node:crypto'

const ALPHABET = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz')
const TIME_LENGTH = 10
const SEQUENCE_LENGTH = 2
const RANDOM_LENGTH = 14
const SEQUENCES = 32 ** SEQUENCE_LENGTH
const PREFIX = 'req_'
/** The characters of an id. Written anew for each. */
const characters = Buffer.from(PREFIX.padEnd(PREFIX.length + TIME_LENGTH + SEQUENCE_LENGTH + RANDOM_LENGTH))
/** When the time is further back than this, the clock was set back. */
const OTHER_TIME_MS = 1000

let newestTime = -1
let sequence = 0

/** Random bytes for many ids: to get a few of them costs as much as to get thousands. */
const random = Buffer.alloc(4096)
const BYTES_PER_ID = 16
let usedBytes = random.length

/**
 * Returns a new request id: `req_`, ten characters of the time in milliseconds, two that count within the millisecond, from
 * a random number on, and fourteen random ones (70 bits). Ids sort by time, which keeps the call log's index compact, and
 * those of a process in the order in which they were made, so that a list has one order.
 */
export function newRequestId(now: number = Date.now()): string {
  if (usedBytes === random.length) {
    randomFillSync(random)
    usedBytes = 0
  }
  const at = usedBytes
  usedBytes += BYTES_PER_ID
  // Some ids are of a time close by, such as those of events. Behind them, a millisecond that was begun is counted on.
  if (now > newestTime || now < newestTime - OTHER_TIME_MS) {
    newestTime = now
    // It begins in the lower half, so that the upper half is free for a millisecond.
    sequence = random.readUInt16LE(at) % (SEQUENCES / 2)
  } else sequence = (sequence + 1) % SEQUENCES
  writeBase32(now, PREFIX.length, TIME_LENGTH)
  writeBase32(sequence, PREFIX.length + TIME_LENGTH, SEQUENCE_LENGTH)
  for (let i = 1; i <= RANDOM_LENGTH; i++)
    characters[characters.length - i] = ALPHABET[(random[usedBytes - i] as number) % 32] as number
  return characters.toString('latin1')
}

function writeBase32(value: number, at: number, length: number): void {
  let rest = value
  for (let i = at + length - 1; i >= at; i--) {
    characters[i] = ALPHABET[rest % 32] as number
    rest = Math.floor(rest / 32)
  }
}

/** Whether a text has the form of a request id. */
export function isRequestId(text: string): boolean {
  return /^req_[0-9a-hjkmnp-tv-z]{26}$/.test(text)
}
