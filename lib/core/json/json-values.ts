/** A JSON object: a body, or any part of one. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the objects of an array; an empty list for anything else. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** Whether an object of an array passes a test; false for anything else. */
export function someObject(value: unknown, test: (object: JsonObject) => boolean): boolean {
  if (!Array.isArray(value)) return false
  for (const item of value) if (isJsonObject(item) && test(item)) return true
  return false
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns a string that is not empty, and undefined for anything else. */
export function nonEmptyString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * A count of tokens as an upstream reports it: a whole number that is exact and not negative. Anything else, a fraction
 * or a string included, says nothing that a charge could rest on, and counts as not reported.
 *
 * @example tokenCount(12) // 12
 * @example tokenCount('12') // undefined
 */
export function tokenCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

/** Nothing that is configured is nested deeper. */
const MAX_DEPTH = 16

/**
 * Returns the paths of all members with the name `__proto__`. A schema drops them without a word, or they would replace a prototype.
 *
 * @example protoMembers(JSON.parse('{"tags":{"__proto__":"x"}}')) // [['tags', '__proto__']]
 */
export function protoMembers(value: unknown, depth = 0): readonly PropertyKey[][] {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return NONE
  const found: PropertyKey[][] = []
  const look = (name: PropertyKey, member: unknown): void => {
    for (const path of protoMembers(member, depth + 1)) found.push([name, ...path])
  }
  if (Array.isArray(value)) for (const [i, item] of value.entries()) look(i, item)
  else
    for (const name of Object.keys(value)) {
      if (name === '__proto__') found.push([name])
      look(name, (value as JsonObject)[name])
    }
  return found
}

const NONE: readonly never[] = []

/** Sets a member as `JSON.parse` does: an assignment to `__proto__` would change the prototype. */
export function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}
