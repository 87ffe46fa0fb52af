import { z } from 'zod'
import { WEBHOOK_EVENTS } from '../../webhooks/index.ts'
import { pageQuery } from '../admin/page-query.ts'
import { deliveryQuery, newWebhookSchema, webhookRotationSchema } from '../admin/webhooks/webhook-schemas.ts'
import { deleted, listOf } from './answer-schemas.ts'
import { adminEndpoint, answersWith, type Endpoint } from './endpoint.ts'

const time = z.iso.datetime()
const type = z.enum(WEBHOOK_EVENTS)

const webhook = z.strictObject({
  id: z.string(),
  object: z.literal('webhook'),
  url: z.string(),
  events: z.array(type).nullable(),
  description: z.string().nullable(),
  dropped: z.int().describe('Deliveries that were dropped because too many waited.'),
  disabled_at: time.nullable().describe('When the receiver answered 410.'),
  created_at: time,
})

const webhookWithSecret = webhook.extend({ secret: z.string() })

const delivery = z.strictObject({
  id: z.string(),
  object: z.literal('webhook_delivery'),
  event: z.string().describe('The `webhook-id` of its requests.'),
  type,
  subject: z.string(),
  state: z
    .enum(['pending', 'delivered', 'given_up'])
    .describe('`given_up`: after a day, a 410, or because too many waited; `error` says which.'),
  attempts: z.int(),
  response_status: z.int().nullable(),
  error: z.string().nullable(),
  next_attempt_at: time.nullable(),
  delivered_at: time.nullable(),
  created_at: time,
})

export const WEBHOOK_ENDPOINTS: readonly Endpoint[] = [
  adminEndpoint('get', '/admin/webhooks', 'listWebhooks', {
    summary: 'Webhooks, by their ids',
    query: pageQuery,
    answers: answersWith('WebhookList', listOf(webhook)),
  }),
  adminEndpoint('post', '/admin/webhooks', 'createWebhook', {
    summary: 'Creates a webhook; its secret is in this answer only',
    body: newWebhookSchema,
    answers: answersWith('WebhookWithSecret', webhookWithSecret, 201),
  }),
  adminEndpoint('post', '/admin/webhooks/{id}/rotate', 'rotateWebhook', {
    summary: 'Gives a webhook a new secret, which is in this answer only',
    body: webhookRotationSchema,
    answers: answersWith('WebhookWithSecret', webhookWithSecret),
  }),
  adminEndpoint('delete', '/admin/webhooks/{id}', 'deleteWebhook', {
    summary: 'Deletes a webhook and its deliveries',
    answers: answersWith('DeletedWebhook', deleted('webhook')),
  }),
  adminEndpoint('get', '/admin/webhooks/{id}/deliveries', 'listDeliveries', {
    summary: 'The deliveries of a webhook, newest first',
    query: deliveryQuery,
    answers: answersWith('WebhookDeliveryList', listOf(delivery)),
  }),
]
