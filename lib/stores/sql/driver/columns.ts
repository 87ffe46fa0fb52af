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
export type Columns<From> = Readonly<Record<string, Column<From, unknown>>>

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
