import type { JsonObject } from '../../json/index.ts'

/** Counts the members that are neither known nor empty. */
export function countUnknownMembers(object: JsonObject, known: ReadonlySet<string>): number {
  let count = 0
  for (const member in object) {
    if (known.has(member)) continue
    const value = object[member]
    if (value !== null && value !== '') count++
  }
  return count
}

const PLAIN = /^[ -[\]-~]*$/

/**
 * Returns the length of a JSON string in UTF-16 units.
 *
 * @param delta the string as it stands in the JSON, with its escapes, UTF-8 read as latin1.
 */
export function utf16Length(delta: string): number {
  if (PLAIN.test(delta)) return delta.length
  const text = Buffer.from(delta, 'latin1').toString()
  try {
    return String(JSON.parse(`"${text}"`)).length
  } catch {
    // Some servers send raw control characters, which JSON forbids.
    return text.length
  }
}
