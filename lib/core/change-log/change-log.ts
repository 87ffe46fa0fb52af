/** Who made a change, when, and in which request: recorded with it. */
export interface ChangeOrigin {
  readonly requestId: string
  readonly actor: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** What operators can change. */
export type ChangeAction =
  | 'account.created'
  | 'account.changed'
  | 'account.deposited'
  | 'key.created'
  | 'key.changed'
  | 'key.rotated'
  | 'key.deleted'
  | 'line.switched'
  | 'ticket.changed'
  | 'video_task.resolved'

/** A change as it is recorded, for good. */
export interface RecordedChange extends ChangeOrigin {
  readonly action: ChangeAction
  /** What was changed: the id of an account, a key, a line, a ticket or a video task. */
  readonly subject: string
  /** What the change is about as it stood; null for what was not there. Amounts are decimal strings; no secrets. */
  readonly before: object | null
  /** The same as it stands since; null for what is not there any more. */
  readonly after: object | null
}

/** Which changes to list; members left out do not narrow. */
export interface ChangeQuery {
  readonly subject?: string | undefined
  /** Only changes whose request id is smaller: where the page before ended. */
  readonly before?: string | undefined
  /** Most changes answered; at least 1. */
  readonly limit: number
}

/** Where those look who want to know what operators have changed. */
export interface ChangeLog {
  /** Newest first, by the ids of their requests. */
  list(query: ChangeQuery): Promise<readonly RecordedChange[]>
}
