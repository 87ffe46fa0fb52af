import { NO_TAGS, type Tags, tagsOf } from '../../../core/catalog/index.ts'

/** Reads a `bigint` column as a number. */
export function toNumber(value: bigint | null): number | null {
  return value === null ? null : Number(value)
}

/** Returns the cell of a number in a `bigint` column. */
export function toBigint(value: number | null): bigint | null {
  return value === null ? null : BigInt(value)
}

/** Reads a text column that holds a JSON list. */
export function toList(json: string | null): string[] | null {
  return json === null ? null : (JSON.parse(json) as string[])
}

/** Reads a text column that holds a JSON object of texts; null: an empty one. */
export function toTags(json: string | null): Tags {
  return json === null ? NO_TAGS : (JSON.parse(json) as Tags)
}

/** Returns the cell of an object of texts in a text column. */
export function fromTags(tags: Tags = NO_TAGS): string | null {
  const sorted = tagsOf(Object.entries(tags))
  return sorted === NO_TAGS ? null : JSON.stringify(sorted)
}

/** Returns the cell of a list in a text column. */
export function toJson(list: readonly string[] | null): string | null {
  return list === null ? null : JSON.stringify(list)
}
