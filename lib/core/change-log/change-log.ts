import { isDeepStrictEqual } from 'node:util'
import type { Request } from 'express'
import { callOf, operatorOf } from '../call/index.ts'

/** The author, the time and the request of a change. */
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

const CREATES = /\.(?:created|opened)$/
const DELETES = /\.(?:deleted|ended)$/

/** Returns the record of an object that was created or deleted, or whose secret was replaced. */
export function changedObject(
  action: ChangeAction,
  subject: string,
  settings: object,
  origin: ChangeOrigin,
): RecordedChange {
  return {
    ...origin,
    action,
    subject,
    before: CREATES.test(action) ? null : settings,
    after: DELETES.test(action) ? null : settings,
  }
}

/** Returns the record of changed settings; undefined if nothing changed. */
export function changedSettings(
  action: ChangeAction,
  subject: string,
  { before, after }: { readonly before: object; readonly after: object },
  origin: ChangeOrigin,
): RecordedChange | undefined {
  return isDeepStrictEqual(before, after) ? undefined : { ...origin, action, subject, before, after }
}

const ACTOR = /^[\x20-\x7e]{1,200}$/

/**
 * Returns who makes a change: the name of the operator whose token or session sends the request, else the value of the
 * header `X-Admin-Actor`, else `admin`.
 */
export function actorOf(req: Request): string {
  const name = operatorOf(req)?.name
  if (name) return name
  const actor = req.get('x-admin-actor')
  if (actor === undefined) return 'admin'
  if (ACTOR.test(actor)) return actor
  const message = 'The header X-Admin-Actor must be 1 to 200 printable ASCII characters.'
  throw callOf(req).refuse('invalid_request', { message })
}

/** Returns the origin of the change that a request makes. */
export function changeOrigin(req: Request, actor: (req: Request) => string): ChangeOrigin {
  const { id, startedAt } = callOf(req)
  return { requestId: id, actor: actor(req), at: startedAt }
}
