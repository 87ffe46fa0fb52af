import { type ChangeOrigin, changedObject, type RecordedChange } from '../../core/change-log/index.ts'
import type { WebhookEventType } from './webhook-event.ts'

/** The forms in which a webhook is sent events: as Standard Webhooks has it, or as a sentence for Slack. */
export const WEBHOOK_FORMATS = ['standard', 'slack'] as const
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number]

/** A receiver of events. Times are milliseconds since the epoch. */
export interface Webhook {
  readonly id: string
  readonly url: string
  readonly format: WebhookFormat
  /** The types of events that it is sent; null = all. */
  readonly events: readonly WebhookEventType[] | null
  readonly description: string | null
  readonly createdAt: number
  /** When it answered 410 and so ended its deliveries; null if it did not. */
  readonly disabledAt: number | null
  /** How many deliveries were dropped because too many waited. */
  readonly dropped: number
}

/** A webhook that an operator creates. */
export interface NewWebhook extends Pick<Webhook, 'id' | 'url' | 'events' | 'description'> {
  readonly secret: string
  /** Defaults to `standard`. */
  readonly format?: WebhookFormat
}

/** An event on its way to a webhook, or there. Times are milliseconds since the epoch. */
export interface Delivery {
  /** A number that grows with each delivery. */
  readonly id: string
  readonly event: string
  readonly type: WebhookEventType
  readonly subject: string
  readonly attempts: number
  /** The HTTP status of the last attempt; null if none was answered. */
  readonly status: number | null
  /** Why the last attempt failed, or why there was none. */
  readonly error: string | null
  readonly createdAt: number
  /** When the next attempt is due; null if there is none. */
  readonly nextAt: number | null
  readonly deliveredAt: number | null
}

/** Selects deliveries. */
export interface DeliveryQuery {
  readonly webhook: string
  /** Selects deliveries with a smaller id; the last id of the previous page. */
  readonly before?: string | undefined
  /** Most deliveries to return; at least 1. */
  readonly limit: number
}

/** Most webhooks. Each may always have one delivery under way, so that none waits for the others. */
export const MAX_WEBHOOKS = 50

/** A store for webhooks. Each change is one transaction, which includes the record of the change. */
export interface WebhookStore {
  /** Returns at most `limit` webhooks ordered by id, those behind the id `after` if it is given. */
  list(limit: number, after?: string): Promise<readonly Webhook[]>

  /** Adds a webhook; returns undefined if there are {@link MAX_WEBHOOKS}. It is sent events that come later. */
  create(webhook: NewWebhook, origin: ChangeOrigin): Promise<Webhook | undefined>

  /** Replaces the secret. The former one signs too until `until`. Returns undefined if there is no such webhook. */
  rotate(id: string, secret: string, until: number, origin: ChangeOrigin): Promise<Webhook | undefined>

  /** Deletes a webhook and its deliveries; returns whether there was one. */
  delete(id: string, origin: ChangeOrigin): Promise<boolean>

  /** Returns deliveries, newest first; undefined if there is no such webhook. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[] | undefined>
}

/** Returns the record of a change of a webhook. It has no secret, and of the address, which may be one, only the origin. */
export function webhookChange(
  action: 'webhook.created' | 'webhook.rotated' | 'webhook.deleted',
  { id, url, format = 'standard', events, description }: Omit<NewWebhook, 'secret'>,
  origin: ChangeOrigin,
): RecordedChange {
  const settings = { origin: new URL(url).origin, format, events, description }
  return changedObject(action, id, settings, origin)
}
