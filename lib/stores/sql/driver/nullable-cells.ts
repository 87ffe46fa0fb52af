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

/** Returns the cell of a list in a text column. */
export function toJson(list: readonly string[] | null): string | null {
  return list === null ? null : JSON.stringify(list)
}
