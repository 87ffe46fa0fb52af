/** What one column of one row may hold. */
export type Cell = string | number | bigint | null

/** How Postgres is handed a column. What is declared `integer` is handed over as `bigint`, too. */
export type CellType = 'text' | 'bigint'

/** A column of a table: its type, and the cell that a thing is written as. `Read` is what the column reads as. */
export interface Column<From, Read> {
  readonly type: CellType
  readonly of: (from: From) => Cell
  /** Of the type only: never there. */
  readonly reads?: Read
}

/** Columns by their names, in the order in which rows have them. */
export type Columns<From> = Readonly<Record<string, Column<From, unknown>>>

/** A row as a table with these columns reads. */
export type RowOf<C> = { [Name in keyof C]: C[Name] extends Column<never, infer Read> ? Read : never }

export function textColumn<From, Text extends string | null>(of: (from: From) => Text): Column<From, Text> {
  return { type: 'text', of }
}

/** Amounts and times, which read as bigint. */
export function bigintColumn<From, Figure extends bigint | number | null>(
  of: (from: From) => Figure,
): Column<From, bigint | Extract<Figure, null>> {
  return { type: 'bigint', of }
}

/** What reads as a number. */
export function integerColumn<From>(of: (from: From) => number): Column<From, number> {
  return { type: 'bigint', of }
}

/** The types of columns, as a `RowStatement` is told them. */
export function typesOf<From>(columns: Columns<From>): Record<string, CellType> {
  return Object.fromEntries(Object.entries(columns).map(([name, { type }]) => [name, type]))
}

/** The cells of a row. */
export function cellsOf<From>(columns: Columns<From>, from: From): Cell[] {
  const cells: Cell[] = []
  for (const name in columns) cells.push((columns[name] as Column<From, unknown>).of(from))
  return cells
}
