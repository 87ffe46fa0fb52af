import { randomFillSync } from 'node:crypto'

const ALPHABET = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz')
const RANDOM_BYTES = 4096
const TIME_START = 'req_'.length
const TIME_END = TIME_START + 10
const LENGTH = TIME_END + 16

const random = Buffer.allocUnsafe(RANDOM_BYTES)
let used = RANDOM_BYTES
/** The last id. The next one is written over it, so that only one string is created per id. */
const id = Buffer.alloc(LENGTH, 'req_')
let lastTime = -1

/**
 * Returns a new request id: `req_`, ten characters of the time in milliseconds, sixteen random ones (80 bits). Ids sort
 * by time, which keeps the call log's index compact.
 */
export function newRequestId(now: number = Date.now()): string {
  if (now !== lastTime) {
    lastTime = now
    let rest = now
    for (let i = TIME_END - 1; i >= TIME_START; i--) {
      id[i] = ALPHABET[rest % 32] as number
      rest = Math.floor(rest / 32)
    }
  }
  if (used + LENGTH - TIME_END > RANDOM_BYTES) {
    randomFillSync(random)
    used = 0
  }
  for (let i = TIME_END; i < LENGTH; i++) id[i] = ALPHABET[(random[used++] as number) & 31] as number
  return id.toString('latin1')
}

/** Whether a text has the form of a request id. */
export function isRequestId(text: string): boolean {
  return /^req_[0-9a-hjkmnp-tv-z]{26}$/.test(text)
}
