import type { SettlementResult } from '../../../../ledger/index.ts'
import type { SettlementCell } from '../../ledger/settlement-cells.ts'

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

/** One piece of work for the worker; it does them one by one, in the order they came. */
export type SqliteRequest =
  | {
      readonly id: number
      readonly kind: 'query'
      /** Opens a transaction first. A statement whose transaction cannot be opened is not run. */
      readonly begin: 'begin' | 'begin immediate' | undefined
      readonly sql: string
      readonly parameters: readonly unknown[]
    }
  | { readonly id: number; readonly kind: 'rollback' }
  /** A whole transaction, done within the thread. */
  | { readonly id: number; readonly kind: 'settle'; readonly cells: readonly SettlementCell[] }
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
  | { readonly id: number; readonly answer: SqliteAnswer | readonly SettlementResult[] }
  | { readonly id: number; readonly fault: SqliteFault }
