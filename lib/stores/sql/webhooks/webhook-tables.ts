import type { WebhookEventType } from '../../../webhooks/index.ts'

/** Receivers of events. */
export interface WebhooksTable {
  id: string
  url: string
  /** The types of events that it is told, as a JSON list; null = all. */
  events: string | null
  description: string | null
  secret: string
  /** The secret before the last rotation, which signs beside the new one for a while. */
  old_secret: string | null
  old_secret_until: bigint | null
  /** When the receiver said that it is gone. */
  disabled_at: bigint | null
  /** How many deliveries were dropped because too many waited. */
  dropped: bigint
  created_at: bigint
}

/** The outbox: events in the transactions of what they tell. */
export interface WebhookEventsTable {
  id: string
  type: WebhookEventType
  subject: string
  at: bigint
  /** As JSON. */
  data: string
  /** 1 once it has its deliveries. */
  addressed: number
}

export interface WebhookDeliveriesTable {
  /** The order of delivery within a webhook and a subject. */
  position: bigint
  webhook: string
  event: string
  subject: string
  created_at: bigint
  attempts: number
  /** The process that attempts it; null if none does. */
  owner: string | null
  /** When the next attempt is due, or when the claim of the owner ends; null once it has ended. */
  next_at: bigint | null
  /** The status and the error of the last attempt. */
  status: number | null
  error: string | null
  delivered_at: bigint | null
}

/** The state of a subject that was announced last. */
export interface WebhookStatesTable {
  subject: string
  state: string
  at: bigint
}

/** One row. */
export interface WebhookPositionsTable {
  /** The last position that was given to a delivery. */
  last: bigint
}

/** The tables of webhooks. */
export interface WebhookTables {
  webhooks: WebhooksTable
  webhook_events: WebhookEventsTable
  webhook_deliveries: WebhookDeliveriesTable
  webhook_states: WebhookStatesTable
  webhook_positions: WebhookPositionsTable
}
