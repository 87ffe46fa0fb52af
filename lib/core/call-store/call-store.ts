import type { CallLogEntry } from '../call/index.ts'

/** Which calls to list; members left out do not narrow. */
export interface CallQuery {
  /** undefined: all accounts. */
  readonly account?: string | undefined
  /** Only these. */
  readonly ids?: readonly string[] | undefined
  readonly model?: string | undefined
  readonly status?: number | undefined
  readonly code?: string | undefined
  /** Milliseconds since the epoch, inclusive. */
  readonly from?: number | undefined
  /** Milliseconds since the epoch, exclusive. */
  readonly to?: number | undefined
  /** Only calls whose id is smaller: where the page before ended. */
  readonly before?: string | undefined
  /** Most entries answered; at least 1. */
  readonly limit: number
}

/** Where the call log is kept. Ids sort by time, so lists need no other order. */
export interface CallStore {
  /** Writes entries, all or none. An id that is there already stays as it is. */
  append(entries: readonly CallLogEntry[]): Promise<void>
  /** The entry with exactly this request id. */
  find(id: string): Promise<CallLogEntry | undefined>
  /**
   * Entries newest first, at most `limit` of them, each with `response_body: null`: a page of kept bodies could be
   * gigabytes. {@link find} answers the body.
   */
  list(query: CallQuery): Promise<CallLogEntry[]>
  /** Deletes up to `limit` of the entries created before a time; answers how many. */
  prune(before: number, limit: number): Promise<number>
}
