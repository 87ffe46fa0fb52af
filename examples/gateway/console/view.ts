import type { Api } from './api.ts'
import type { Child } from './element.ts'
import type { Session } from './session.ts'

/** The context in which a view is shown. */
export interface ViewContext {
  readonly session: Session
  readonly api: Api
  /** The parameters of the address, by their names in the pattern. */
  readonly params: Readonly<Record<string, string>>
  /** The query of the address. */
  readonly query: URLSearchParams
  /** Aborted when the user leaves the view; ends its requests and timers. */
  readonly signal: AbortSignal
  /** Shows the view again with fresh data. */
  reload(): void
}

/** The initial content of a view. The view adds data when it has loaded. */
export interface ViewContent {
  /** The heading of the page, and the title of its tab. */
  readonly title: string
  /** Elements beside the heading. */
  readonly actions?: Child
  readonly content: Child
}

export type View = (context: ViewContext) => ViewContent

/** Whether an error comes from a request that was aborted because the user left the view. */
export function isLeaving(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
