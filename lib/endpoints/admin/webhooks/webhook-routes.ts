import type { Request, Response, Router } from 'express'
import { callOf } from '../../../core/call/index.ts'
import { changeOrigin } from '../../../core/change-log/index.ts'
import {
  idIn,
  isoTime,
  jsonBody,
  listPage,
  newRouter,
  orNotFound,
  ownQuery,
  readBody,
  readQuery,
} from '../../../core/json-api/index.ts'
import {
  type Delivery,
  MAX_WEBHOOKS,
  newWebhookSecret,
  type Webhook,
  type WebhookStore,
  webhookUrlFault,
} from '../../../webhooks/index.ts'
import { newId } from '../new-id.ts'
import { pageQuery } from '../page-query.ts'
import { deliveryQuery, newWebhookSchema, webhookRotationSchema } from './webhook-schemas.ts'

/** The webhooks that operators manage. */
export interface AdminWebhooks {
  readonly store: WebhookStore
  /** Whether a webhook may have a private address, or an `http:` one; as the sender has it. Defaults to false. */
  readonly allowPrivate?: boolean
}

export interface WebhookRoutesOptions {
  readonly webhooks: AdminWebhooks
  readonly actor: (req: Request) => string
}

/** Returns the routes of `/webhooks`. A secret is in the answer that makes it, and in no other. */
export function webhookRoutes({ webhooks, actor }: WebhookRoutesOptions): Router {
  const { store, allowPrivate = false } = webhooks
  const router = newRouter()
  router.get('/webhooks', ownQuery, listWebhooks)
  router.post('/webhooks', jsonBody, createWebhook)
  router.post('/webhooks/:id/rotate', jsonBody, rotateSecret)
  router.delete('/webhooks/:id', deleteWebhook)
  router.get('/webhooks/:id/deliveries', ownQuery, listDeliveries)
  return router

  async function listWebhooks(req: Request, res: Response): Promise<void> {
    const { limit, cursor } = readQuery(req, pageQuery)
    res.json(listPage(await store.list(limit + 1, cursor), limit, describeWebhook))
  }

  async function createWebhook(req: Request, res: Response): Promise<void> {
    const settings = readBody(req, newWebhookSchema)
    const fault = webhookUrlFault(settings.url, allowPrivate)
    if (fault) throw callOf(req).refuse('invalid_request', { param: 'url', message: `url: ${fault}.` })
    const secret = newWebhookSecret()
    const id = newId('wh')
    const webhook = await store.create({ id, ...settings, secret }, changeOrigin(req, actor))
    if (!webhook) {
      const message = `There are ${MAX_WEBHOOKS} webhooks, which is the most. Delete one first.`
      throw callOf(req).refuse('conflict', { message })
    }
    res.status(201).json({ ...describeWebhook(webhook), secret })
  }

  async function rotateSecret(req: Request, res: Response): Promise<void> {
    const { overlap_seconds: overlap } = readBody(req, webhookRotationSchema)
    const secret = newWebhookSecret()
    const origin = changeOrigin(req, actor)
    const webhook = await store.rotate(idIn(req), secret, origin.at + overlap * 1000, origin)
    res.json({ ...describeWebhook(orNotFound(req, webhook)), secret })
  }

  async function deleteWebhook(req: Request, res: Response): Promise<void> {
    const id = idIn(req)
    if (!(await store.delete(id, changeOrigin(req, actor)))) throw callOf(req).refuse('not_found')
    res.json({ id, object: 'webhook', deleted: true })
  }

  async function listDeliveries(req: Request, res: Response): Promise<void> {
    const { limit, cursor } = readQuery(req, deliveryQuery)
    const found = await store.deliveries({ webhook: idIn(req), before: cursor, limit: limit + 1 })
    res.json(listPage(orNotFound(req, found), limit, describeDelivery))
  }
}

function describeWebhook({ id, url, events, description, dropped, disabledAt, createdAt }: Webhook) {
  return {
    ...{ id, object: 'webhook', url, events, description, dropped },
    disabled_at: isoTime(disabledAt),
    created_at: isoTime(createdAt),
  }
}

function describeDelivery(delivery: Delivery) {
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
