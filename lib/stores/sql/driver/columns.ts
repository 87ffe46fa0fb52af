import { NO_TAGS, type Tags, tagsOf } from '../../../core/catalog/index.ts'

/** The value of one column in one row. */
export type Cell = string | number | bigint | null

/** The type of a parameter for Postgres. A column declared `integer` is passed as `bigint`, too. */
export type CellType = 'text' | 'bigint'

/** A column of a table: its type, and how its cell is made from an object. `Read` is the type that queries return. */
export interface Column<From, Read> {
  readonly type: CellType
  readonly of: (from: From) => Cell
  /** For the type only; never set. */
  readonly reads?: Read
}

/** Columns by name, in the order in which rows have them. */
type Columns<From> = Readonly<Record<string, Column<From, unknown>>>

/** A row that a query of these columns returns. */
export type RowOf<C> = { [Name in keyof C]: C[Name] extends Column<never, infer Read> ? Read : never }

export function textColumn<From, Text extends string | null>(of: (from: From) => Text): Column<From, Text> {
  return { type: 'text', of }
}

/** A column of amounts or times, which queries return as bigint. */
export function bigintColumn<From, Figure extends bigint | number | null>(
  of: (from: From) => Figure,
): Column<From, bigint | Extract<Figure, null>> {
  return { type: 'bigint', of }
}

/** A column that queries return as a number. */
export function integerColumn<From>(of: (from: From) => number): Column<From, number> {
  return { type: 'bigint', of }
}

/** Returns the types of columns, for a `RowStatement`. */
export function typesOf<From>(columns: Columns<From>): Record<string, CellType> {
  return Object.fromEntries(Object.entries(columns).map(([name, { type }]) => [name, type]))
}

export function cellsOf<From>(columns: Columns<From>, from: From): Cell[] {
  const cells: Cell[] = []
  for (const name in columns) cells.push((columns[name] as Column<From, unknown>).of(from))
  return cells
}

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
