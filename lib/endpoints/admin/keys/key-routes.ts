import { randomBytes } from 'node:crypto'
import type { Request, Response, Router } from 'express'
import type { z } from 'zod'
import { callOf } from '../../../core/call/index.ts'
import { formatAmount, hashSecret, parseAmount, tagsOf } from '../../../core/catalog/index.ts'
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
import { type Authority, refuseRuled } from '../authority/drift-routes.ts'
import { type LedgerView, type WalletFigures, walletsOf } from '../ledger/ledger-view.ts'
import { newId } from '../new-id.ts'
import { accountPageQuery } from '../page-query.ts'
import { describeOverlap, describeSettings } from './key-change.ts'
import { keyChangeSchema, keyRotationSchema, newKeySchema } from './key-schemas.ts'
import type { Key, KeySettings, KeyStore } from './key-store.ts'

export interface KeyRoutesOptions {
  readonly keys: KeyStore
  readonly ledger: LedgerView
  readonly authority?: Authority | undefined
  /** Returns what the settings of a key name that does not exist. */
  readonly warningsOf: (key: Key) => readonly string[]
  readonly actor: (req: Request) => string
}

const SECRET_BYTES = 32

/** Returns the routes of `/keys`: API keys and what they have spent. A new secret is in the answer once, and nowhere else. */
export function keyRoutes({ keys, ledger, authority, warningsOf, actor }: KeyRoutesOptions): Router {
  const router = newRouter()
  router.get('/keys', ownQuery, listKeys)
  router.post('/keys', jsonBody, createKey)
  router.get('/keys/:id', showKey)
  router.patch('/keys/:id', jsonBody, changeKey)
  router.delete('/keys/:id', deleteKey)
  router.post('/keys/:id/rotate', jsonBody, rotateKey)
  return router

  async function listKeys(req: Request, res: Response): Promise<void> {
    const { limit, cursor, account } = readQuery(req, accountPageQuery)
    const found = await keys.list({ account, after: cursor, limit: limit + 1 })
    const wallets = await walletsOf(ledger, 'key', found)
    res.json(listPage(found, limit, (key) => described(key, wallets.get(key.id))))
  }

  async function createKey(req: Request, res: Response): Promise<void> {
    const { id = newId('key'), account, ...members } = readBody(req, newKeySchema)
    const secret = newSecret()
    const key = { ...revised(DEFAULT_SETTINGS, members), id, account, secretHash: hashSecret(secret) }
    const creation = await keys.create(key, changeOrigin(req, actor))
    switch (creation.kind) {
      case 'created':
        await send(res.status(201), creation.key, { secret })
        return
      case 'taken':
        throw callOf(req).refuse('conflict', {
          message: 'A key with this id exists or existed. Choose another id.',
        })
      case 'no_account':
        throw callOf(req).refuse('invalid_request', {
          param: 'account',
          message: 'account: there is no account with this id. Create it first.',
        })
      default:
        throw new TypeError('the store of keys did not say whether it made a key')
    }
  }

  async function showKey(req: Request, res: Response): Promise<void> {
    await send(res, orNotFound(req, await keys.find(idIn(req))))
  }

  async function changeKey(req: Request, res: Response): Promise<void> {
    const members = readBody(req, keyChangeSchema)
    await refuseRuled(req, authority, 'key')
    const origin = changeOrigin(req, actor)
    const key = await keys.change(idIn(req), (settings) => revised(settings, members), origin)
    await send(res, orNotFound(req, key))
  }

  async function rotateKey(req: Request, res: Response): Promise<void> {
    const { overlap_seconds: overlap } = readBody(req, keyRotationSchema)
    await refuseRuled(req, authority, 'key')
    const secret = newSecret()
    const origin = changeOrigin(req, actor)
    const key = await keys.rotate(idIn(req), hashSecret(secret), origin, overlap * 1000)
    await send(res, orNotFound(req, key), { secret })
  }

  async function deleteKey(req: Request, res: Response): Promise<void> {
    const id = idIn(req)
    await refuseRuled(req, authority, 'key')
    if (!(await keys.delete(id, changeOrigin(req, actor)))) throw callOf(req).refuse('not_found')
    res.json({ id, object: 'key', deleted: true })
  }

  async function send(res: Response, key: Key, more: object = {}): Promise<void> {
    const wallets = await walletsOf(ledger, 'key', [key])
    res.json({ ...described(key, wallets.get(key.id)), ...more })
  }

  function described(key: Key, wallet: WalletFigures | undefined) {
    return { ...describeKey(key, wallet), warnings: warningsOf(key) }
  }
}

const DEFAULT_SETTINGS: KeySettings = {
  name: null,
  note: null,
  tags: {},
  enabled: true,
  expiresAt: null,
  quota: null,
  allowIps: null,
  allowModels: null,
  limits: { rpm: null, tpm: null },
}

function newSecret(): string {
  return `sk-${randomBytes(SECRET_BYTES).toString('base64url')}`
}

/** Returns settings in which the members of a body, also those of its limits, are replaced. */
function revised(settings: KeySettings, body: z.output<typeof keyChangeSchema>): KeySettings {
  const { name = settings.name, note = settings.note } = body
  const tags = body.tags === undefined ? settings.tags : tagsOf(Object.entries(body.tags))
  const { enabled = settings.enabled, limits = {} } = body
  const { rpm = settings.limits.rpm, tpm = settings.limits.tpm } = limits
  const { allow_ips: allowIps = settings.allowIps, allow_models: allowModels = settings.allowModels } = body
  const expiresAt = body.expires_at === undefined ? settings.expiresAt : timeOf(body.expires_at)
  const quota = body.quota === undefined ? settings.quota : amountOf(body.quota)
  return { name, note, tags, enabled, expiresAt, quota, allowIps, allowModels, limits: { rpm, tpm } }
}

function timeOf(text: string | null): number | null {
  return text === null ? null : Date.parse(text)
}

function amountOf(text: string | null): bigint | null {
  return text === null ? null : parseAmount(text)
}

function describeKey(key: Key, wallet: WalletFigures | undefined) {
  const { spent, leased } = wallet ?? { spent: 0n, leased: 0n }
  return {
    id: key.id,
    object: 'key',
    ...describeSettings(key),
    spent: formatAmount(spent),
    leased: formatAmount(leased),
    available: key.quota === null ? null : formatAmount(key.quota - spent - leased),
    ...describeOverlap(
      key.previousUntil !== null && key.previousUntil > Date.now() ? key : { previousUntil: null },
    ),
    last_used_at: isoTime(key.lastUsedAt),
    created_at: isoTime(key.createdAt),
  }
}
