import type { Buffer } from 'node:buffer'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** A string is read byte by byte for so long at first, and is searched natively from there on. */
const NEAR = 48

/** Returns the offset behind the string that begins at `start`; the length of the text if the string does not end. */
export function endOfString(raw: Buffer, start: number): number {
  let at = start + 1
  for (let stretch = NEAR; ; stretch *= 2) {
    const near = Math.min(raw.length, at + stretch)
    while (at < near) {
      const byte = raw[at]
      if (byte === QUOTE) return at + 1
      at += byte === BACKSLASH ? 2 : 1
    }
    if (at >= raw.length) return raw.length
    const quote = raw.indexOf(QUOTE, at)
    if (quote < 0) return raw.length
    let backslashes = 0
    while (quote - 1 - backslashes >= at && raw[quote - 1 - backslashes] === BACKSLASH) backslashes++
    at = quote + 1
    if (backslashes % 2 === 0) return at
    // An escaped quote. More of them may follow, and each would cost a native search.
  }
}
