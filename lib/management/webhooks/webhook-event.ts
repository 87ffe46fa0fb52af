import { createHash } from 'node:crypto'
import { z } from 'zod'
import { newRequestId } from '../../core/call/index.ts'
import { time } from '../../core/json-api/index.ts'

/** The types of events that webhooks are sent. */
export const WEBHOOK_EVENTS = [
  'budget.threshold',
  'budget.exhausted',
  'balance.low',
  'key.expiring',
  'line.down',
  'line.up',
  'ledger.away',
  'ticket.opened',
] as const

export type WebhookEventType = (typeof WEBHOOK_EVENTS)[number]

const amount = z.string().regex(/^-?\d+(\.\d+)?$/)
const line = z.strictObject({ line: z.string() })
const budget = z.strictObject({
  budget: z.string(),
  share: z.number().describe('The share of the amount that is spent.'),
  amount,
  spent: amount,
})

/** The data of an event, by its type. */
const EVENT_DATA = {
  'budget.threshold': budget,
  'budget.exhausted': budget,
  'balance.low': z.strictObject({ account: z.string(), balance: amount, threshold: amount }),
  'key.expiring': z.strictObject({ key: z.string(), account: z.string(), expires_at: time }),
  'line.down': line,
  'line.up': line,
  'ledger.away': z.strictObject({ from: time, until: time }),
  'ticket.opened': z.strictObject({
    ticket: z.string(),
    account: z.string(),
    key: z.string().nullable(),
    request_id: z.string(),
  }),
} satisfies Record<WebhookEventType, z.ZodObject>

/** Returns the schema of the body that webhooks are sent for a type of event. */
export function messageSchema(type: WebhookEventType): z.ZodObject {
  return z.strictObject({ type: z.literal(type), timestamp: time, data: EVENT_DATA[type] })
}

/** An event that operators want to know of. */
export interface WebhookEvent {
  /** The id of the message at its receivers. An event whose id was recorded before is not recorded again. */
  readonly id: string
  readonly type: WebhookEventType
  /** The object of the event, such as `key:<id>`. Events of one subject are delivered in the order of their records. */
  readonly subject: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly data: object
}

/** The members of an event before it has an id. */
export interface EventFacts extends Omit<WebhookEvent, 'id'> {
  /**
   * A name of the occurrence, such as a budget, its period and the threshold. Of all events of a type and a name, one is
   * sent, within the 30 days that events are kept. Absent: each event is sent.
   */
  readonly once?: string
}

const ID_CHARACTERS = 26
/** How far events made at the same time may be moved apart. */
const MOVED_MS = 1000
let lastAt = 0

/**
 * Returns a new event. Of events that this process makes in the same millisecond, each is a millisecond later than the one
 * before it: their times are their order.
 *
 * @example
 * newEvent({ type: 'budget.exhausted', subject: 'budget:b1', once: 'b1 2026-11', at: Date.now(), data: { budget: 'b1' } })
 */
export function newEvent({ once, ...facts }: EventFacts): WebhookEvent {
  const at = facts.at <= lastAt && lastAt - facts.at < MOVED_MS ? lastAt + 1 : facts.at
  // Events for later have no time yet.
  if (at > 0) lastAt = at
  const unique =
    once === undefined
      ? newRequestId(at).slice('req_'.length)
      : createHash('sha256').update(`${facts.type} ${once}`).digest('hex').slice(0, ID_CHARACTERS)
  return { ...facts, at, id: `evt_${unique}` }
}
