import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const POOL_BYTES = 4096
const RANDOM_CHARS = 16

/** Random characters, made many at a time; those of one id after the other are used. */
const pool = Buffer.allocUnsafe(POOL_BYTES)
let used = POOL_BYTES
let lastTime = 0
let timeText = ''

/**
 * A new request id: `req_`, ten characters of the time in milliseconds, sixteen random ones (80 bits). Ids sort by
 * the time they were made, which keeps the call log's index compact.
 */
export function newRequestId(now: number = Date.now()): string {
  if (now !== lastTime) {
    lastTime = now
    timeText = ''
    for (let rest = now; timeText.length < 10; rest = Math.floor(rest / 32)) {
      timeText = (ALPHABET[rest % 32] as string) + timeText
    }
  }
  if (used + RANDOM_CHARS > POOL_BYTES) {
    randomFillSync(pool)
    for (let i = 0; i < POOL_BYTES; i++) pool[i] = ALPHABET.charCodeAt((pool[i] as number) & 31)
    used = 0
  }
  const random = pool.toString('latin1', used, used + RANDOM_CHARS)
  used += RANDOM_CHARS
  return `req_${timeText}${random}`
}

/** Whether a text has the form of a request id. */
export function isRequestId(text: string): boolean {
  return /^req_[0-9a-hjkmnp-tv-z]{26}$/.test(text)
}
