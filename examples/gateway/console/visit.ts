import type { Api } from './api.ts'
import type { Child } from './element.ts'
import type { Session } from './session.ts'

/** One look at one view. */
export interface Visit {
  readonly session: Session
  readonly api: Api
  /** What the pattern of the view's address names. */
  readonly params: Readonly<Record<string, string>>
  /** What stands behind the `?` of the address. */
  readonly query: URLSearchParams
  /** Aborted when the reader goes elsewhere: requests and timers of the view end with it. */
  readonly signal: AbortSignal
  /** Shows the view anew, with what the gateway says now. */
  reload(): void
}

/** What a view shows at once; what it has to ask for, it fills in as it comes. */
export interface Shown {
  /** The heading of the page, and the title of its tab. */
  readonly title: string
  /** Beside the heading. */
  readonly actions?: Child
  readonly content: Child
}

export type View = (visit: Visit) => Shown

/** Aborted requests of a view that is left are no faults. */
export function isLeaving(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
