import { hash } from 'node:crypto'

/** Returns the SHA-256 of a key's secret, hexadecimal. Stores hold and look up this hash, not the secret. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}

/**
 * Compiles an allow-list of names with `*` wildcards (`["chat-small", "claude-*"]`) into a predicate. `undefined` allows
 * all names, an empty list none.
 */
export function compileAllowList(patterns: readonly string[] | undefined): (name: string) => boolean {
  if (patterns === undefined) return ANY
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const wild = patterns.filter((pattern) => pattern.includes('*')).map((pattern) => pattern.split('*'))
  if (wild.length === 0) return (name) => exact.has(name)
  return (name) => exact.has(name) || wild.some((parts) => matches(name, parts))
}

/** One function, by which a key that may use everything is known. */
const ANY = (): boolean => true

/** Matches the literal parts between the asterisks from left to right: linear time, without backtracking. */
function matches(name: string, parts: readonly string[]): boolean {
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last))
    return false
  const end = name.length - last.length
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}
