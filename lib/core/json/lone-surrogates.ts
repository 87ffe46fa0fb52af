import type { Buffer } from 'node:buffer'
import { BACKSLASH } from './json-text.ts'
import { setMember } from './json-values.ts'

const U = 0x75
const D = 0x64
const LOWER_CASE = 0x20
/** Behind an escape, so many bytes are looked at one by one before the text is searched natively. */
const NEAR = 64

/** The arguments of `refine` for a text that is stored. Every database stores well-formed text unchanged. */
export const WELL_FORMED = [
  (text: string): boolean => text.isWellFormed(),
  { error: 'must be well-formed Unicode' },
] as const

/**
 * Replaces lone surrogates in a parsed JSON text by U+FFFD, which is what their UTF-8 is. `JSON.stringify` writes each as an
 * escape and takes fifteen times as long as to parse it. Changes what it is given; use what it returns.
 *
 * @param raw the text. UTF-8 has no lone surrogates, but escapes can name them.
 */
export function withoutLoneSurrogates(json: unknown, raw: Buffer): unknown {
  return hasSurrogateEscape(raw) ? wellFormed(json) : json
}

/** Whether a JSON text may have an escape of a surrogate, such as `\ud83d`. An escaped backslash before `ud` counts, too. */
function hasSurrogateEscape(raw: Buffer): boolean {
  for (let at = raw.indexOf('\\u'); at >= 0; at = nextEscape(raw, at + 2))
    if (((raw[at + 2] ?? 0) | LOWER_CASE) === D) return true
  return false
}

/** Texts with such escapes have many of them, and a native search costs too much for each. */
function nextEscape(raw: Buffer, from: number): number {
  const near = Math.min(raw.length, from + NEAR)
  for (let at = from; at < near; at++) if (raw[at] === BACKSLASH && raw[at + 1] === U) return at
  return raw.indexOf('\\u', near)
}

function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = wellFormed(value[i])
    return value
  }
  const members = Object.entries(value)
  if (!members.every(([name]) => name.isWellFormed()))
    return Object.fromEntries(members.map(([name, member]) => [name.toWellFormed(), wellFormed(member)]))
  for (const [name, member] of members) {
    const next = wellFormed(member)
    if (next !== member) setMember(value as Record<string, unknown>, name, next)
  }
  return value
}
