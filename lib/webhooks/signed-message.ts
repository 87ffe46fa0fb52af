import { randomBytes } from 'node:crypto'
import { Webhook as Signer } from 'standardwebhooks'
import type { ClaimedDelivery } from './outbox.ts'

/** A request as Standard Webhooks defines it. */
export interface SignedMessage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const SECRET_BYTES = 32

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** Signs an event for a webhook. Each attempt has the same body and id, and a time and signature of its own. */
export function signedMessage({ event, secrets }: ClaimedDelivery, now: number): SignedMessage {
  const { id, type, at, data } = event
  const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
  const time = new Date(now)
  const signatures = secrets.map((secret) => new Signer(secret).sign(id, time, body))
  return {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'express-model-gateway',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now / 1000)),
      'webhook-signature': signatures.join(' '),
    },
    body,
  }
}
