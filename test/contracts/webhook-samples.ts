import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import {
  newEvent,
  type WebhookEventType,
  type WebhookOutbox,
  type WebhookStore,
} from '../../lib/management/webhooks/index.ts'

/** Stores to try, with nothing in them. */
export interface WebhooksUnderTest {
  store: WebhookStore
  /** Two handles to the same outbox. */
  outboxes: readonly [WebhookOutbox, WebhookOutbox]
  changes: ChangeLog
  close(): Promise<void>
}

export const NOW = 1_767_225_600_000
export const DAY_MS = 86_400_000

export const eventOf = (n: number, subject = 'line:a', type: WebhookEventType = 'line.down') =>
  newEvent({ type, subject, at: NOW + n, data: { n, odd: 'Wörüm\u0000"\u{1f9ea}' } })
