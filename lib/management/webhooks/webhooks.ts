import { z } from 'zod'
import { callOf } from '../../core/call/index.ts'
import {
  type AnswerOf,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  orNotFound,
  pageMembers,
  pageQuery,
  time,
} from '../../core/json-api/index.ts'
import { deletedOf, deletion, newId, type ResourceParts, rotationOf, textMember } from '../resource.ts'
import { WEBHOOK_EVENTS } from './webhook-event.ts'
import { newWebhookSecret, webhookUrlFault } from './webhook-request.ts'
import {
  type Delivery,
  MAX_WEBHOOKS,
  WEBHOOK_FORMATS,
  type Webhook,
  type WebhookStore,
} from './webhook-store.ts'

/** The webhooks that operators manage. */
export interface AdminWebhooks {
  readonly store: WebhookStore
  /** Whether a webhook may have a private address, or an `http:` one; as the sender has it. Defaults to false. */
  readonly allowPrivate?: boolean
}

const newWebhook = z.strictObject({
  url: z.string().describe('An https address on the public internet.'),
  events: z
    .array(z.enum(WEBHOOK_EVENTS, `must be one of ${WEBHOOK_EVENTS.join(', ')}`))
    .min(1)
    .max(WEBHOOK_EVENTS.length)
    .nullable()
    .default(null)
    .describe('The types of events; null: all, also those of later versions.'),
  description: textMember.nullable().default(null),
  format: z
    .enum(WEBHOOK_FORMATS, `must be one of ${WEBHOOK_FORMATS.join(', ')}`)
    .default('standard')
    .describe('`slack`: one sentence, for an incoming webhook of Slack, without a signature.'),
})

const type = z.enum(WEBHOOK_EVENTS)

const webhook = z.strictObject({
  id: z.string(),
  object: z.literal('webhook'),
  url: z.string(),
  format: z.enum(WEBHOOK_FORMATS),
  events: z.array(type).nullable(),
  description: z.string().nullable(),
  dropped: z.int().describe('Deliveries that were dropped because too many waited.'),
  disabled_at: time.nullable().describe('When the receiver answered 410.'),
  created_at: time,
})
export type WebhookAnswer = AnswerOf<typeof webhook>

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
export type DeliveryAnswer = AnswerOf<typeof delivery>

interface WebhookParts extends ResourceParts {
  readonly webhooks: AdminWebhooks
}

const endpoint = endpointFor<WebhookParts>()

/** A secret is in the answer that makes it, and in no other. */
export const WEBHOOK_ENDPOINTS = [
  endpoint({
    id: 'listWebhooks',
    method: 'get',
    path: '/webhooks',
    role: 'admin',
    summary: 'Webhooks, by their ids',
    query: pageQuery,
    answers: answersWith('WebhookList', listOf(webhook)),
    async handle({ query: { limit, cursor } }, { webhooks: { store } }) {
      return listPage(await store.list(limit + 1, cursor), limit, describe)
    },
  }),
  endpoint({
    id: 'createWebhook',
    method: 'post',
    path: '/webhooks',
    role: 'admin',
    summary: 'Creates a webhook; its secret is in this answer only',
    body: newWebhook,
    answers: answersWith('WebhookWithSecret', webhookWithSecret, 201),
    async handle({ req, body }, { webhooks: { store, allowPrivate = false }, origin }) {
      const fault = webhookUrlFault(body.url, allowPrivate)
      if (fault) throw callOf(req).refuse('invalid_request', { param: 'url', message: `url: ${fault}.` })
      const secret = newWebhookSecret()
      const created = await store.create({ id: newId('wh'), ...body, secret }, origin(req))
      if (created) return { ...describe(created), secret }
      const message = `There are ${MAX_WEBHOOKS} webhooks, which is the most. Delete one first.`
      throw callOf(req).refuse('conflict', { message })
    },
  }),
  endpoint({
    id: 'rotateWebhook',
    method: 'post',
    path: '/webhooks/{id}/rotate',
    role: 'admin',
    summary: 'Gives a webhook a new secret, which is in this answer only',
    body: rotationOf('For how long the previous secret signs, too.', 86_400),
    answers: answersWith('WebhookWithSecret', webhookWithSecret),
    async handle({ req, id, body: { overlap_seconds: overlap } }, { webhooks: { store }, origin }) {
      const secret = newWebhookSecret()
      const change = origin(req)
      const rotated = await store.rotate(id, secret, change.at + overlap * 1000, change)
      return { ...describe(orNotFound(req, rotated)), secret }
    },
  }),
  endpoint({
    id: 'deleteWebhook',
    method: 'delete',
    path: '/webhooks/{id}',
    role: 'admin',
    summary: 'Deletes a webhook and its deliveries',
    answers: answersWith('DeletedWebhook', deletedOf('webhook')),
    async handle({ req, id }, { webhooks: { store }, origin }) {
      orNotFound(req, await store.delete(id, origin(req)))
      return deletion('webhook', id)
    },
  }),
  endpoint({
    id: 'listDeliveries',
    method: 'get',
    path: '/webhooks/{id}/deliveries',
    role: 'admin',
    summary: 'The deliveries of a webhook, newest first',
    query: z.strictObject(pageMembers((text) => /^\d{1,18}$/.test(text))),
    answers: answersWith('WebhookDeliveryList', listOf(delivery)),
    async handle({ req, id, query: { limit, cursor } }, { webhooks: { store } }) {
      const found = await store.deliveries({ webhook: id, before: cursor, limit: limit + 1 })
      return listPage(orNotFound(req, found), limit, describeDelivery)
    },
  }),
]

function describe(webhook: Webhook): WebhookAnswer {
  const { id, url, format, events, description, dropped, disabledAt, createdAt } = webhook
  return {
    ...{ id, object: 'webhook', url, format, events, description, dropped },
    disabled_at: isoTime(disabledAt),
    created_at: isoTime(createdAt),
  }
}

function describeDelivery(delivery: Delivery): DeliveryAnswer {
  const { id, event, type, subject, attempts, status, error, nextAt, deliveredAt } = delivery
  const ended = deliveredAt === null ? 'given_up' : 'delivered'
  return {
    ...{ id, object: 'webhook_delivery', event, type, subject, attempts, error },
    state: nextAt === null ? ended : 'pending',
    response_status: status,
    next_attempt_at: isoTime(nextAt),
    delivered_at: isoTime(deliveredAt),
    created_at: isoTime(delivery.createdAt),
  }
}
