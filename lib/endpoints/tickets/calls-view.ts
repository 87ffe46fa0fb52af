import type { CallLogEntry } from '../../core/call/index.ts'

/** The operation of a call log that tickets need; every `CallStore` has it. */
export interface CallsView {
  /** Returns the entries with these ids, without response bodies. */
  list(query: {
    readonly ids: readonly string[]
    readonly limit: number
  }): Promise<{ readonly entries: readonly CallLogEntry[] }>
}
