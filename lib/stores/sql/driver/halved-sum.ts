import { type AliasedRawBuilder, sql } from 'kysely'

/** The columns of the sum of a column: its upper part, and its lower 32 bits. */
export type HalvedSum<Name extends string> = [
  AliasedRawBuilder<bigint, `${Name}_high`>,
  AliasedRawBuilder<bigint, `${Name}_low`>,
]

/** Returns the columns that {@link joinedSum} joins to a sum of amounts: in SQLite, a sum above 63 bits fails. */
export function halvedSum<Name extends string>(name: Name): HalvedSum<Name> {
  const amount = sql.ref(name)
  return [
    sql<bigint>`sum(${amount} >> 32)`.as(`${name}_high`),
    sql<bigint>`sum(${amount} & 4294967295)`.as(`${name}_low`),
  ]
}

/** Returns the sum of a row that has the columns of {@link halvedSum}. */
export function joinedSum(row: Readonly<Record<string, unknown>>, name: string): bigint {
  return (BigInt(row[`${name}_high`] as bigint) << 32n) + BigInt(row[`${name}_low`] as bigint)
}
