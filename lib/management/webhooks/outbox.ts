import type { WebhookEvent, WebhookEventType } from './webhook-event.ts'
import type { WebhookFormat } from './webhook-store.ts'

/** The clocks of processes differ by less. A time further ahead was recorded before a clock was set back. */
export const MAX_CLOCK_SKEW_MS = 600_000

/** A delivery that a process has claimed, with all that it sends. */
export interface ClaimedDelivery {
  readonly id: string
  readonly webhook: string
  readonly url: string
  readonly format: WebhookFormat
  /** The current secret first, then the one before it while that signs too. */
  readonly secrets: readonly string[]
  readonly event: WebhookEvent
  /** The attempts so far, with this one. */
  readonly attempts: number
}

/** A claim on due deliveries of a webhook. Times are milliseconds since the epoch. */
export interface DeliveryClaim {
  readonly webhook: string
  /** The name of the process. */
  readonly owner: string
  readonly now: number
  /** When the deliveries are due again, if the process has not said how they ended. */
  readonly until: number
  readonly limit: number
}

/** How an attempt ended. */
export type AttemptEnd =
  | { readonly kind: 'delivered'; readonly status: number }
  /** Another attempt follows at `nextAt`; null: none does. */
  | {
      readonly kind: 'failed'
      readonly status: number | null
      readonly error: string
      readonly nextAt: number | null
    }
  /** The receiver wants no more events: its webhook is disabled. */
  | { readonly kind: 'gone'; readonly status: number }
  /** The process ends: the attempt does not count, and another process may make it at once. */
  | { readonly kind: 'handed_back' }

/** The state of a subject that was announced last, and when that was noted. */
export interface AnnouncedState {
  readonly state: string
  readonly at: number
}

/** A new state of a subject. */
export interface Announcement {
  readonly state: string
  /** Absent: only the state, or its time, is noted. */
  readonly event?: WebhookEvent
}

/** The result of {@link WebhookOutbox.createDeliveries}. */
export interface CreatedDeliveries {
  readonly events: number
  /** How many deliveries were dropped, by webhook. */
  readonly dropped: ReadonlyMap<string, number>
}

/** Most deliveries that wait in each queue of a webhook. Of more, the oldest of the account that has the most there are dropped. */
export const MAX_WAITING = 1000

/** Why deliveries end without having been attempted until they succeed. */
export const DROPPED_ERROR = 'dropped: too many waited'
export const GONE_ERROR = 'the receiver answered 410'

/** The states that last until the opposite is announced, however long ago that was. */
export const LASTING_STATES: readonly string[] = ['down', 'low']

/**
 * Events and their deliveries, for all processes that share it. A webhook's events of one subject are delivered in the
 * order of their records: the next waits until the one before it was delivered or given up. Accounts take turns.
 */
export interface WebhookOutbox {
  /** Records events, except those whose id was recorded before. */
  record(events: readonly WebhookEvent[]): Promise<void>

  /**
   * Records an event if the state of its subject has changed.
   *
   * @param decide returns the new state after the last one, while no other process announces one of this subject; undefined:
   *   nothing. May be called again.
   * @returns whether an event was recorded.
   */
  announce(
    subject: string,
    at: number,
    decide: (last: AnnouncedState | undefined) => Announcement | undefined,
  ): Promise<boolean>

  /** Returns the subjects of which this state was announced last. */
  announced(state: string): Promise<ReadonlyMap<string, AnnouncedState>>

  /** Takes this turn, and returns true, unless a process has taken it within `everyMs`. */
  claimTurn(name: string, now: number, everyMs: number): Promise<boolean>

  /** Makes the deliveries of new events. */
  createDeliveries(now: number): Promise<CreatedDeliveries>

  /** Returns the time of the oldest event that has not come to a receiver and is still meant to; null if there is none. */
  oldestWaiting(): Promise<number | null>

  /** Returns the webhooks that have due deliveries. */
  due(now: number): Promise<readonly string[]>

  /** Claims due deliveries: at most one of each subject, the first that waits; the accounts of each queue in turn. */
  claim(claim: DeliveryClaim): Promise<readonly ClaimedDelivery[]>

  /** Notes how an attempt ended, unless another process has claimed the delivery since. */
  finish(id: string, owner: string, end: AttemptEnd, now: number): Promise<void>

  /** Deletes up to `limit` deliveries made, and events announced, before a time; returns how many deliveries. */
  prune(before: number, limit: number): Promise<number>
}

/**
 * Where a delivery waits. Each webhook has three queues, each with its own bound: of money, of lines and the ledger, and of what
 * callers and their keys cause. None takes the room of another, and a queue is delivered before those behind it.
 */
export interface DeliveryShare {
  /** 0: money, 1: operation, 2: all else. */
  readonly queue: number
  /** Its owner in that queue: the account, or the subject if the event names no account. */
  readonly share: string
}

const QUEUE_OF: Readonly<Record<WebhookEventType, number>> = {
  'budget.threshold': 0,
  'budget.exhausted': 0,
  'balance.low': 0,
  'line.down': 1,
  'line.up': 1,
  'ledger.away': 1,
  'key.expiring': 2,
  'ticket.opened': 2,
}

export function deliveryShare({
  type,
  subject,
  data,
}: Pick<WebhookEvent, 'type' | 'subject' | 'data'>): DeliveryShare {
  const { account } = data as { account?: unknown }
  return { queue: QUEUE_OF[type], share: typeof account === 'string' ? `account:${account}` : subject }
}

/** The deliveries of one account that wait in one queue of a webhook. */
export interface WaitingShare extends DeliveryShare {
  readonly count: number
  /** The turns of the first and the last that wait. */
  readonly firstTurn: number
  readonly lastTurn: number
}

/**
 * Returns a function that gives new deliveries of a webhook their turns: the first of each account comes before the second of
 * any. An account that has nothing waiting begins at the turn that is being delivered.
 */
export function deliveryTurns(waiting: readonly WaitingShare[]): (share: DeliveryShare) => number {
  const last = new Map(waiting.map((each) => [nameOf(each), each.lastTurn]))
  const now = waiting.length > 0 ? Math.min(...waiting.map(({ firstTurn }) => firstTurn)) - 1 : 0
  return (share) => {
    const turn = Math.max(last.get(nameOf(share)) ?? 0, now) + 1
    last.set(nameOf(share), turn)
    return turn
  }
}

function nameOf({ queue, share }: DeliveryShare): string {
  return `${queue} ${share}`
}
