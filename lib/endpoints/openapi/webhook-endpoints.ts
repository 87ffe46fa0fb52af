import { z } from 'zod'
import { WEBHOOK_EVENTS } from '../../webhooks/index.ts'
import { pageQuery } from '../admin/page-query.ts'
import { deliveryQuery, newWebhookSchema, webhookRotationSchema } from '../admin/webhooks/webhook-schemas.ts'
import { listOf } from './answer-schemas.ts'
import { answersWith, type Endpoint } from './endpoint.ts'

const admin = { tag: 'Admin', auth: 'admin' } as const
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

const deletedWebhook = z.strictObject({
  id: z.string(),
  object: z.literal('webhook'),
  deleted: z.literal(true),
})

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

/** The endpoints of webhooks. */
export const WEBHOOK_ENDPOINTS: readonly Endpoint[] = [
  {
    id: 'listWebhooks',
    method: 'get',
    path: '/admin/webhooks',
    summary: 'Webhooks, by their ids',
    ...admin,
    query: pageQuery,
    answers: answersWith('WebhookList', listOf(webhook)),
  },
  {
    id: 'createWebhook',
    method: 'post',
    path: '/admin/webhooks',
    summary: 'Creates a webhook; its secret is in this answer only',
    ...admin,
    body: newWebhookSchema,
    answers: answersWith('WebhookWithSecret', webhookWithSecret, 201),
  },
  {
    id: 'rotateWebhook',
    method: 'post',
    path: '/admin/webhooks/{id}/rotate',
    summary: 'Gives a webhook a new secret, which is in this answer only',
    ...admin,
    body: webhookRotationSchema,
    answers: answersWith('WebhookWithSecret', webhookWithSecret),
  },
  {
    id: 'deleteWebhook',
    method: 'delete',
    path: '/admin/webhooks/{id}',
    summary: 'Deletes a webhook and its deliveries',
    ...admin,
    answers: answersWith('DeletedWebhook', deletedWebhook),
  },
  {
    id: 'listDeliveries',
    method: 'get',
    path: '/admin/webhooks/{id}/deliveries',
    summary: 'The deliveries of a webhook, newest first',
    ...admin,
    query: deliveryQuery,
    answers: answersWith('WebhookDeliveryList', listOf(delivery)),
  },
]
