import type { CallLogEntry } from '../call/index.ts'
import type { Tags } from '../catalog/index.ts'

/** Selects calls; a member that is left out does not filter. */
export interface CallQuery {
  readonly account?: string | undefined
  /** Selects the calls with these ids. */
  readonly ids?: readonly string[] | undefined
  readonly key?: string | undefined
  readonly model?: string | undefined
  /** Selects calls whose last attempt went to this line. */
  readonly line?: string | undefined
  readonly user?: string | undefined
  /** Selects calls that have all of these tags. */
  readonly tags?: Tags | undefined
  readonly status?: number | undefined
  /** The first digit of the status: 5 selects 500 to 599. */
  readonly statusClass?: number | undefined
  readonly code?: string | undefined
  readonly outcome?: CallLogEntry['outcome'] | undefined
  /** Selects calls that usage counts, in this of its counts. */
  readonly counted?: 'requests' | 'refused' | 'failed' | undefined
  readonly minDurationMs?: number | undefined
  /** The caller's own `X-Request-Id`. */
  readonly clientRequestId?: string | undefined
  /** Milliseconds since the epoch, inclusive. */
  readonly from?: number | undefined
  /** Milliseconds since the epoch, exclusive. */
  readonly to?: number | undefined
  /** Selects calls with a smaller id; the last id of the previous page. */
  readonly before?: string | undefined
  /** Most entries to return; at least 1. */
  readonly limit: number
}

/** The result of a search. */
export interface CallPage {
  /** Newest first. */
  readonly entries: readonly CallLogEntry[]
  /**
   * The id of the last call that the store has looked at, if it has stopped before it found `limit` calls: there may be more with a
   * smaller id. A store may stop so when few of many calls fit. Left out if there are no more, or `limit` are found.
   */
  readonly next?: string
}

/** A store for the entries of the call log. Ids sort by time, so that lists are ordered by id. */
export interface CallStore {
  /** Writes all entries or none. An entry whose id exists is left as it is. */
  append(entries: readonly CallLogEntry[]): Promise<void>
  /** Returns the entry with this request id. */
  find(id: string): Promise<CallLogEntry | undefined>
  /**
   * Returns entries, newest first, each with `response_body: null`: a page of stored bodies could take gigabytes.
   * {@link find} returns the body.
   */
  list(query: CallQuery): Promise<CallPage>
  /** Deletes up to `limit` entries created before a time, and returns how many it deleted. */
  prune(before: number, limit: number): Promise<number>
}
