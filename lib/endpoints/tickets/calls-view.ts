import type { CallLogEntry } from '../../core/call/index.ts'

/** What tickets need of the call log; any `CallStore` fits. */
export interface CallsView {
  /** Of these ids, those that are there, without the bodies that were kept of answers. */
  list(query: { readonly ids: readonly string[]; readonly limit: number }): Promise<readonly CallLogEntry[]>
}
