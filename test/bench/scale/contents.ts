import type { Database } from '../../../lib/stores/sql/index.ts'

/** How one engine words what statements that fill tables need. */
export interface Wording {
  /** A table `series` of one column `n` that counts from 0 up to below `rows`; `''` where `source` alone makes it. */
  readonly define: (rows: number) => string
  readonly source: (rows: number) => string
  /** `n` as so many hexadecimal digits, in lower case. */
  readonly hex: (n: string, digits: number) => string
  /** Milliseconds since the epoch as ISO 8601. */
  readonly isoOf: (ms: string) => string
  /** Of what kind a table is that is dropped before the end. */
  readonly temporary: string
  /** The order of rows that are put into a table which is kept in that order. */
  readonly sorted: string
  /** As `hashSecret` writes it. */
  readonly sha256: (text: string) => string
}

/** The contents that databases are filled with. */
export interface Contents {
  /** The tables that are filled. */
  readonly tables: readonly string[]
  /** Statements, each with its name, that are run before `calls` has its indexes. */
  readonly rows: (wording: Wording) => [string, string][]
  /** The operations that read `calls` by its indexes. Defaults to none. */
  readonly sums?: () => [string, string][]
  /** Prepares a Postgres whose tables are empty. Defaults to nothing. */
  readonly prepare?: (db: Database) => Promise<void>
}
