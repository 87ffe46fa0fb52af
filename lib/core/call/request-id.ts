import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const POOL_BYTES = 4096
const RANDOM_CHARS = 16

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
    timeText = encodeTime(now)
  }
  if (used + RANDOM_CHARS > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  let random = ''
  for (let i = 0; i < RANDOM_CHARS; i++) random += ALPHABET[(pool[used + i] as number) & 31]
  used += RANDOM_CHARS
  return `req_${timeText}${random}`
}

function encodeTime(time: number): string {
  let text = ''
  for (let rest = time, i = 0; i < 10; i++) {
    text = (ALPHABET[rest % 32] as string) + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/** Whether a text has the form of a request id. */
export function isRequestId(text: string): boolean {
  return /^req_[0-9a-hjkmnp-tv-z]{26}$/.test(text)
}
