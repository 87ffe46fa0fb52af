import type { Cell } from '../columns.ts'

/** What a parameter of a statement may be. */
export type SqliteValue = string | number | bigint | null | Uint8Array

/** How the worker opens its database. */
export interface SqliteWorkerOptions {
  readonly file: string
  readonly readOnly: boolean
  /** How long a statement waits for another process's write, in milliseconds. */
  readonly busyTimeoutMs: number
  /** Most prepared statements kept. */
  readonly maxStatements: number
}

/** A statement that is run once for each of its rows. */
export interface SqliteWrite {
  readonly sql: string
  readonly rows: readonly (readonly Cell[])[]
  /** Whether a row may be left out. */
  readonly loose: boolean
}

/** One piece of work for the worker; it does them one by one, in the order they came. */
export type SqliteRequest =
  | {
      readonly id: number
      readonly kind: 'query'
      /** Opens a transaction first. A statement whose transaction cannot be opened is not run. */
      readonly begin: 'begin' | 'begin immediate' | undefined
      readonly sql: string
      /** Or one parameter that is rows, for each of which the statement is run. */
      readonly parameters: readonly unknown[]
    }
  | { readonly id: number; readonly kind: 'rollback' }
  /** A whole transaction, done within the thread. Answers whether every row was written; else none is. */
  | { readonly id: number; readonly kind: 'write'; readonly writes: readonly SqliteWrite[] }
  | { readonly id: number; readonly kind: 'close' }

/** What came of a statement. */
export interface SqliteAnswer {
  readonly rows: Record<string, SqliteValue>[]
  /** Rows written; undefined for a statement that answers rows. */
  readonly changes: bigint | undefined
}

/** An error in the form in which it crosses the thread. */
export interface SqliteFault {
  /** That of the error: `RangeError` tells figures beyond what the database holds. */
  readonly name?: string
  readonly message: string
  readonly code: string
  readonly errcode: number | undefined
}

/** Id of the answer that says whether the database could be opened. */
export const OPENED = 0

export type SqliteResponse =
  | { readonly id: number; readonly answer: SqliteAnswer | boolean }
  | { readonly id: number; readonly fault: SqliteFault }
