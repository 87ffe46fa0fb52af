import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { callOf, keyLimitsOf } from '../../core/call/index.ts'
import { formatAmount, hashSecret, isAddressOrBlock, parseAmount, tagsOf } from '../../core/catalog/index.ts'
import { keyMembers } from '../../core/config/index.ts'
import {
  type AnswerOf,
  accountPageQuery,
  amount,
  answersWith,
  endpointFor,
  isoTime,
  keyLimits,
  listOf,
  listPage,
  orNotFound,
  time,
} from '../../core/json-api/index.ts'
import { type LedgerView, walletsOf } from '../accounts/ledger.ts'
import { type Authority, refuseRuled } from '../authority/drift.ts'
import {
  deletedOf,
  deletion,
  idMember,
  limitMember,
  names,
  newId,
  type ResourceParts,
  rotationOf,
  warnings,
} from '../resource.ts'
import { describeOverlap, describeSettings, type Key, type KeySettings, type KeyStore } from './key-store.ts'

const YEAR_10000 = 253_402_300_800_000

/** Absent members, also those of `limits`, stay as they are. */
const keyPatch = z
  .strictObject({
    name: keyMembers.name.nullable(),
    note: keyMembers.note.nullable(),
    tags: keyMembers.tags.describe('Tags that every call with the key has. Replaces all of them.'),
    enabled: keyMembers.enabled,
    expires_at: keyMembers.expiresAt
      .refine((text) => Date.parse(text) < YEAR_10000, { error: 'must be before the year 10000' })
      .nullable()
      .describe('ISO 8601; null: never.'),
    quota: keyMembers.quota
      .nullable()
      .describe('The amount that the key may spend in all, as a decimal string; null: no quota.'),
    allow_ips: z
      .array(z.string().refine(isAddressOrBlock, { error: 'must be an address or a CIDR block' }))
      .nullable()
      .describe('Addresses and CIDR blocks; null: all.'),
    allow_models: keyMembers.allowModels.nullable().describe('Model ids, * is a wildcard; null: all.'),
    limits: z.strictObject({ rpm: limitMember, tpm: limitMember }).partial(),
  })
  .partial()

const newKey = z.strictObject({
  id: idMember.optional().describe('Absent: a new id is generated.'),
  account: idMember,
  ...keyPatch.shape,
})

const keyRotation = rotationOf(
  'How long the previous secret is still valid. An earlier one becomes invalid at once.',
)

const key = z.strictObject({
  id: z.string(),
  object: z.literal('key'),
  account: z.string(),
  name: z.string().nullable(),
  note: z.string().nullable(),
  tags: z.record(z.string(), z.string()).describe('Tags that every call with the key has.'),
  enabled: z.boolean(),
  expires_at: time.nullable(),
  quota: amount.nullable(),
  spent: amount,
  leased: amount,
  available: amount.nullable(),
  allow_ips: names,
  allow_models: names,
  limits: keyLimits,
  warnings,
  previous_secret_expires_at: time.nullable().describe('null: only the current secret is valid.'),
  last_used_at: time.nullable().describe('To about a minute; null: never.'),
  created_at: time,
})
export type KeyAnswer = AnswerOf<typeof key>

const keyWithSecret = key.extend({ secret: z.string().describe('Sent once, in this answer only.') })

interface KeyParts extends ResourceParts {
  readonly keys: KeyStore
  readonly ledger: LedgerView
  readonly authority?: Authority | undefined
  /** Returns what the settings of a key name that does not exist. */
  readonly warningsOf: (key: Key) => readonly string[]
}

const endpoint = endpointFor<KeyParts>()

/** API keys and what they have spent. A new secret is in the answer once, and nowhere else. */
export const KEY_ENDPOINTS = [
  endpoint({
    id: 'listKeys',
    method: 'get',
    path: '/keys',
    role: 'viewer',
    summary: 'API keys, by their ids',
    query: accountPageQuery,
    answers: answersWith('KeyList', listOf(key)),
    async handle({ query: { limit, cursor, account } }, parts) {
      const found = await parts.keys.list({ account, after: cursor, limit: limit + 1 })
      return listPage(await describeAll(found, parts), limit, (described) => described)
    },
  }),
  endpoint({
    id: 'createKey',
    method: 'post',
    path: '/keys',
    role: 'admin',
    summary: 'Creates a key; its secret is in this answer only',
    body: newKey,
    answers: answersWith('KeyWithSecret', keyWithSecret, 201),
    async handle({ req, body: { id = newId('key'), account, ...members } }, parts) {
      const secret = newSecret()
      const made = { ...revised(DEFAULT_SETTINGS, members), id, account, secretHash: hashSecret(secret) }
      const creation = await parts.keys.create(made, parts.origin(req))
      switch (creation.kind) {
        case 'created':
          return { ...(await describe(creation.key, parts)), secret }
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
    },
  }),
  endpoint({
    id: 'getKey',
    method: 'get',
    path: '/keys/{id}',
    role: 'viewer',
    summary: 'One key',
    answers: answersWith('Key', key),
    async handle({ req, id }, parts) {
      return describe(orNotFound(req, await parts.keys.find(id)), parts)
    },
  }),
  endpoint({
    id: 'changeKey',
    method: 'patch',
    path: '/keys/{id}',
    role: 'admin',
    summary: 'Changes the settings of a key',
    body: keyPatch,
    answers: answersWith('Key', key),
    async handle({ req, id, body }, parts) {
      await refuseRuled(req, parts.authority, 'key', id)
      const changed = await parts.keys.change(id, (before) => revised(before, body), parts.origin(req))
      return describe(orNotFound(req, changed), parts)
    },
  }),
  endpoint({
    id: 'deleteKey',
    method: 'delete',
    path: '/keys/{id}',
    role: 'admin',
    summary: 'Deletes a key for good',
    answers: answersWith('DeletedKey', deletedOf('key')),
    async handle({ req, id }, { keys, authority, origin }) {
      await refuseRuled(req, authority, 'key', id)
      orNotFound(req, await keys.delete(id, origin(req)))
      return deletion('key', id)
    },
  }),
  endpoint({
    id: 'rotateKey',
    method: 'post',
    path: '/keys/{id}/rotate',
    role: 'admin',
    summary: 'Gives a key a new secret, which is in this answer only',
    body: keyRotation,
    answers: answersWith('KeyWithSecret', keyWithSecret),
    async handle({ req, id, body: { overlap_seconds: overlap } }, parts) {
      await refuseRuled(req, parts.authority, 'key', id)
      const secret = newSecret()
      const rotated = await parts.keys.rotate(id, hashSecret(secret), parts.origin(req), overlap * 1000)
      return { ...(await describe(orNotFound(req, rotated), parts)), secret }
    },
  }),
]

const DEFAULT_SETTINGS: KeySettings = {
  name: null,
  note: null,
  tags: {},
  enabled: true,
  expiresAt: null,
  quota: null,
  allowIps: null,
  allowModels: null,
  limits: keyLimitsOf(),
}

const SECRET_BYTES = 32

function newSecret(): string {
  return `sk-${randomBytes(SECRET_BYTES).toString('base64url')}`
}

/** Returns settings in which the members of a body, also those of its limits, are replaced. */
function revised(settings: KeySettings, body: z.output<typeof keyPatch>): KeySettings {
  const { name = settings.name, note = settings.note } = body
  const tags = body.tags === undefined ? settings.tags : tagsOf(Object.entries(body.tags))
  const { enabled = settings.enabled } = body
  const limits = keyLimitsOf({ ...settings.limits, ...body.limits })
  const { allow_ips: allowIps = settings.allowIps, allow_models: allowModels = settings.allowModels } = body
  const expiresAt = body.expires_at === undefined ? settings.expiresAt : timeOf(body.expires_at)
  const quota = body.quota === undefined ? settings.quota : amountOf(body.quota)
  return { name, note, tags, enabled, expiresAt, quota, allowIps, allowModels, limits }
}

function timeOf(text: string | null): number | null {
  return text === null ? null : Date.parse(text)
}

function amountOf(text: string | null): bigint | null {
  return text === null ? null : parseAmount(text)
}

async function describe(key: Key, parts: KeyParts): Promise<KeyAnswer> {
  const [described] = await describeAll([key], parts)
  return described as KeyAnswer
}

async function describeAll(keys: readonly Key[], { ledger, warningsOf }: KeyParts): Promise<KeyAnswer[]> {
  const wallets = await walletsOf(ledger, 'key', keys)
  return keys.map((key) => {
    const { spent, leased } = wallets.get(key.id) ?? { spent: 0n, leased: 0n }
    const overlaps = key.previousUntil !== null && key.previousUntil > Date.now()
    return {
      id: key.id,
      object: 'key',
      ...describeSettings(key),
      spent: formatAmount(spent),
      leased: formatAmount(leased),
      available: key.quota === null ? null : formatAmount(key.quota - spent - leased),
      ...describeOverlap(overlaps ? key : { previousUntil: null }),
      last_used_at: isoTime(key.lastUsedAt),
      created_at: isoTime(key.createdAt),
      warnings: warningsOf(key),
    }
  })
}
