import { setMember } from './json-values.ts'

/** The arguments of `refine` for a text that is stored. Every database stores well-formed text unchanged. */
export const WELL_FORMED = [
  (text: string): boolean => text.isWellFormed(),
  { error: 'must be well-formed Unicode' },
] as const

/**
 * Replaces lone surrogates in a parsed JSON text by U+FFFD, which is what their UTF-8 is. `JSON.stringify` writes each as an
 * escape and takes fifteen times as long as to parse it. Changes what it is given; use what it returns.
 */
export function withoutLoneSurrogates(value: unknown): unknown {
  // V8 knows of a string without wide characters that it has none.
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withoutLoneSurrogates(value[i])
    return value
  }
  for (const name in value) {
    if (!name.isWellFormed()) return withWellFormedNames(value)
    const member: unknown = value[name as keyof typeof value]
    const next = withoutLoneSurrogates(member)
    if (next !== member) setMember(value as Record<string, unknown>, name, next)
  }
  return value
}

function withWellFormedNames(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.toWellFormed(), withoutLoneSurrogates(member)]),
  )
}
