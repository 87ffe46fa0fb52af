import type { Cell } from '../columns.ts'

export type SqliteValue = string | number | bigint | null | Uint8Array

/** The settings of the worker's database. */
export interface SqliteWorkerOptions {
  readonly file: string
  readonly readOnly: boolean
  /** How long a statement waits for a write of another process, in milliseconds. */
  readonly busyTimeoutMs: number
  /** Most prepared statements to keep. */
  readonly maxStatements: number
}

/** A statement that runs once for each of its rows. */
export interface SqliteWrite {
  readonly sql: string
  readonly rows: readonly (readonly Cell[])[]
  /** Whether a row may be left out. */
  readonly loose: boolean
}

/** A request to the worker, which handles requests one by one in their order. */
export type SqliteRequest =
  | {
      readonly id: number
      readonly kind: 'query'
      /** Opens a transaction first. If that fails, the statement does not run. */
      readonly begin: 'begin' | 'begin immediate' | undefined
      readonly sql: string
      /** The parameters, or a single parameter that is a list of rows, for each of which the statement runs. */
      readonly parameters: readonly unknown[]
    }
  | { readonly id: number; readonly kind: 'rollback' }
  /** A whole transaction within the thread. The answer is whether all rows were written; if not, none is. */
  | { readonly id: number; readonly kind: 'write'; readonly writes: readonly SqliteWrite[] }
  | { readonly id: number; readonly kind: 'close' }

export interface SqliteAnswer {
  readonly rows: Record<string, SqliteValue>[]
  /** The number of written rows; undefined for a statement that returns rows. */
  readonly changes: bigint | undefined
}

/** An error in the form in which it is sent between the threads. */
export interface SqliteFault {
  /** The name of the error: a `RangeError` means that a figure does not fit the database. */
  readonly name?: string
  readonly message: string
  readonly code: string
  readonly errcode: number | undefined
}

/** The id of the answer that says whether the database could be opened. */
export const OPENED = 0

export type SqliteResponse =
  | { readonly id: number; readonly answer: SqliteAnswer | boolean }
  | { readonly id: number; readonly fault: SqliteFault }
