import type { Buffer } from 'node:buffer'

const ESCAPES = ['\\ud', '\\uD']

/**
 * Replaces lone surrogates in a parsed JSON text by U+FFFD, which is what their UTF-8 is. `JSON.stringify` writes each as an
 * escape and takes fifteen times as long as to parse it. Changes what it is given; use what it returns.
 *
 * @param raw the text. UTF-8 has no lone surrogates, but escapes can name them.
 */
export function withoutLoneSurrogates(json: unknown, raw: Buffer): unknown {
  return ESCAPES.some((begin) => raw.includes(begin)) ? wellFormed(json) : json
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
    // An assignment to `__proto__` would change the prototype.
    if (next !== member)
      Object.defineProperty(value, name, {
        value: next,
        writable: true,
        enumerable: true,
        configurable: true,
      })
  }
  return value
}
