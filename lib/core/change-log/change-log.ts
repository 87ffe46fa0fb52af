/** Who made a change, when, and in which request. */
export interface ChangeOrigin {
  readonly requestId: string
  readonly actor: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** The changes that operators can make. */
export type ChangeAction =
  | 'account.created'
  | 'account.changed'
  | 'account.deposited'
  | 'account.adjusted'
  | 'budget.created'
  | 'budget.changed'
  | 'budget.deleted'
  | 'key.created'
  | 'key.changed'
  | 'key.rotated'
  | 'key.deleted'
  | 'line.switched'
  | 'line.rests_lifted'
  | 'ticket.changed'
  | 'video_task.resolved'
  | 'operator.created'
  | 'operator.changed'
  | 'operator.rotated'
  | 'operator.deleted'
  | 'session.opened'
  | 'session.ended'
  | 'webhook.created'
  | 'webhook.rotated'
  | 'webhook.deleted'

/** A recorded change. */
export interface RecordedChange extends ChangeOrigin {
  readonly action: ChangeAction
  /** The id of what was changed, such as an account, a key or a line. */
  readonly subject: string
  /** The subject before the change; null if it did not exist. Amounts are decimal strings; there are no secrets. */
  readonly before: object | null
  /** The subject after the change; null if it no longer exists. */
  readonly after: object | null
}

/** Selects changes; a member that is left out does not filter. */
export interface ChangeQuery {
  readonly subject?: string | undefined
  /** Selects changes with a smaller request id; the last id of the previous page. */
  readonly before?: string | undefined
  /** Most changes to return; at least 1. */
  readonly limit: number
}

/** Lists the changes that operators have made. */
export interface ChangeLog {
  /** Returns changes, newest request first. */
  list(query: ChangeQuery): Promise<readonly RecordedChange[]>
}
