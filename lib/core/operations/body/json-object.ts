/** A JSON object that an upstream sent; its members may be anything. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects in a list; undefined when it is no list. */
export function objectsOf(value: unknown): JsonObject[] | undefined {
  return Array.isArray(value) ? value.filter(isJsonObject) : undefined
}
