export type { WatchedLine } from './line-watch.ts'
export { MemoryWebhooks, type MemoryWebhooksOptions } from './memory-webhooks.ts'
export {
  type AnnouncedState,
  type Announcement,
  type AttemptEnd,
  type ClaimedDelivery,
  type CreatedDeliveries,
  type DeliveryClaim,
  DROPPED_ERROR,
  GONE_ERROR,
  LASTING_STATES,
  MAX_WAITING,
  type WebhookOutbox,
} from './outbox.ts'
export { LONGEST_WAIT_MS } from './retries.ts'
export { newWebhookSecret } from './signed-message.ts'
export type { EndingKey, WatchedBalance, WatchSource } from './watch-source.ts'
export {
  type Delivery,
  type DeliveryQuery,
  MAX_WEBHOOKS,
  type NewWebhook,
  type Webhook,
  type WebhookStore,
  webhookChange,
} from './webhook.ts'
export {
  type EventFacts,
  newEvent,
  WEBHOOK_EVENTS,
  type WebhookEvent,
  type WebhookEventType,
} from './webhook-event.ts'
export { WebhookSender, type WebhookSenderOptions } from './webhook-sender.ts'
export { webhookUrlFault } from './webhook-url.ts'
export { WebhookWatch, type WebhookWatchOptions } from './webhook-watch.ts'
