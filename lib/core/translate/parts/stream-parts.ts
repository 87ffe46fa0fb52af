import type { JsonObject } from '../translation.ts'

/** How many members an object has that hold something and are not known. */
export function othersIn(object: JsonObject, known: ReadonlySet<string>): number {
  let others = 0
  for (const member in object) {
    if (known.has(member)) continue
    const value = object[member]
    if (value !== null && value !== '') others++
  }
  return others
}

const PLAIN = /^[ -[\]-~]*$/

/**
 * The length of a text in UTF-16 units, as it stands in JSON.
 *
 * @param delta UTF-8 read as latin1, escapes and all.
 */
export function unitsIn(delta: string): number {
  if (PLAIN.test(delta)) return delta.length
  const text = Buffer.from(delta, 'latin1').toString()
  try {
    return String(JSON.parse(`"${text}"`)).length
  } catch {
    // Raw control characters, which JSON forbids and some servers send.
    return text.length
  }
}
