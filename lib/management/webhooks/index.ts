export {
  type AnnouncedState,
  type Announcement,
  type AttemptEnd,
  type ClaimedDelivery,
  type CreatedDeliveries,
  type DeliveryClaim,
  DROPPED_ERROR,
  deliveryShare,
  deliveryTurns,
  GONE_ERROR,
  LASTING_STATES,
  MAX_WAITING,
  type WaitingShare,
  type WebhookOutbox,
} from './outbox.ts'
export { type EventFacts, newEvent, type WebhookEvent, type WebhookEventType } from './webhook-event.ts'
export { LONGEST_WAIT_MS, WebhookSender, type WebhookSenderOptions } from './webhook-sender.ts'
export {
  type Delivery,
  type DeliveryQuery,
  MAX_WEBHOOKS,
  type NewWebhook,
  type Webhook,
  type WebhookFormat,
  type WebhookStore,
  webhookChange,
} from './webhook-store.ts'
export {
  type EndingKey,
  type WatchedBalance,
  type WatchedLine,
  type WatchSource,
  WebhookWatch,
  type WebhookWatchOptions,
} from './webhook-watch.ts'
