import { z } from 'zod'
import {
  ENDPOINTS_BY_PROTOCOL,
  isAmount,
  isTagName,
  isTagValue,
  MAX_TAG_BYTES,
  MAX_TAGS,
} from '../catalog/index.ts'
import { AMOUNT_FORM } from '../catalog/money.ts'
import { isUsualTier } from '../catalog/service-tier.ts'
import { WELL_FORMED } from '../json/index.ts'
import { accessMembers } from './access-members.ts'
import { dialectMembers } from './dialect-members.ts'
import { guardMembers } from './guard-members.ts'
import { serviceMembers } from './service-members.ts'

const id = z
  .string()
  .max(200)
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
const amount = z
  .string()
  .refine(isAmount, { error: `must be ${AMOUNT_FORM}`, abort: true })
  // The largest amount of nano-units that fits into 64 bits.
  .refine((text) => Math.abs(Number(text)) < 9_223_372_036, { error: 'must be below 9223372036' })
const price = amount.refine((text) => !text.startsWith('-'), { error: 'must not be negative' })
/** A text that all databases store unchanged. */
const text = z.string().refine(...WELL_FORMED)
const count = z.int().min(0)
const limit = z.int().min(1).nullable()
const milliseconds = z.int().min(1).max(86_400_000)

/** `rpm`: requests per minute; `tpm`: input tokens per minute; `concurrency`: requests at a time. */
const keyLimits = z.strictObject({ rpm: limit.default(null), tpm: limit.default(null) })
const accountLimits = z.strictObject({ ...keyLimits.shape, concurrency: limit.default(null) })

const featureSchema = z.enum(['stream', 'tools', 'vision', 'json', 'reasoning'])
const protocolSchema = z.enum(['openai', 'anthropic', 'ark'])

const endpointNames = Object.values(ENDPOINTS_BY_PROTOCOL).flat()
const endpointSchema = z.enum(endpointNames, {
  error: `must be the path of an endpoint without "/v1/", one of ${endpointNames.join(', ')}`,
})

const prices = {
  inputPerMillion: price,
  outputPerMillion: price,
  cachedInputPerMillion: price,
  cacheWritePerMillion: price,
  cacheWrite1hPerMillion: price,
  audioInputPerMillion: price,
  audioOutputPerMillion: price,
  perRequest: price,
  perImage: price,
  perSecond: price,
  perSearchUnit: price,
  perWebSearch: price,
}
const tier = z
  .strictObject({
    ...z.strictObject(prices).partial().shape,
    aboveInputTokens: z
      .int()
      .min(1)
      .optional()
      .describe('Holds for calls with more input tokens, for all that they use.'),
    serviceTier: z
      .string()
      .regex(/^[a-z0-9_]{1,32}$/, 'must be a name that lines report, in small letters, such as "priority"')
      .refine((name) => !isUsualTier(name), { error: 'is the tier that the other prices are for' })
      .optional()
      .describe('Holds for calls that the line served in this tier.'),
  })
  .refine(({ aboveInputTokens, serviceTier }) => (aboveInputTokens ?? serviceTier) !== undefined, {
    error: 'needs "aboveInputTokens" or "serviceTier"',
  })
/** All members are optional. An absent price is free on a model, and that of the model on a line. */
const priceSchema = z.strictObject({ ...prices, tiers: z.array(tier) }).partial()

const account = z.strictObject({
  id,
  name: text.optional(),
  balance: amount.optional().describe('Prepaid balance at first start. Absent: postpaid.'),
  limits: accountLimits.prefault({}),
  regions: z.array(id).optional().describe('Gateway regions that may process its calls. Absent: all.'),
  lineRegions: z.array(id).optional().describe('Regions of the lines that may serve it. Absent: all.'),
})

const tagName = z.string().refine(isTagName, { error: 'must be the name of a tag' })
const tagValue = z.string().refine(isTagValue, {
  error: `must be 1 to ${MAX_TAG_BYTES} bytes without control characters, and without spaces at its ends`,
})

/** The members of a key that the config and the admin API share. */
export const keyMembers = {
  name: text.max(200),
  note: text.max(2000),
  tags: z
    .record(tagName, tagValue)
    .refine((tags) => Object.keys(tags).length <= MAX_TAGS, { error: `must be at most ${MAX_TAGS} tags` }),
  enabled: z.boolean(),
  expiresAt: z.iso.datetime({
    offset: true,
    error: 'must be a time with an offset, such as "2027-01-01T00:00:00Z"',
  }),
  quota: price,
  allowModels: z.array(text.min(1)),
}

const key = z.strictObject({
  id,
  account: id,
  secret: z
    .string()
    .max(512)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .describe('The API key itself, or "env:NAME". Stored as its SHA-256 only.'),
  name: keyMembers.name.optional(),
  note: keyMembers.note.optional(),
  tags: keyMembers.tags.default({}).describe('Tags that every call with the key has.'),
  enabled: keyMembers.enabled.default(true),
  expiresAt: keyMembers.expiresAt.optional(),
  quota: keyMembers.quota.optional().describe('The most that the key may spend in all. Absent: no quota.'),
  allowIps: z.array(z.string()).optional().describe('Addresses or CIDR blocks. Absent: all.'),
  allowModels: keyMembers.allowModels.optional().describe('Model ids; * is a wildcard. Absent: all.'),
  limits: keyLimits.prefault({}),
})

/** No answer is given again for longer: 24 days. */
const MAX_TTL_SECONDS = 24 * 86_400

const model = z.strictObject({
  id: id.describe('Callers ask for it. A pattern, such as gpt-*, stands for many models.'),
  kind: z.enum(['chat', 'embedding', 'image', 'rerank', 'video']),
  contextWindow: z.int().min(1).optional(),
  maxOutputTokens: z.int().min(1).optional(),
  features: z.array(featureSchema).optional(),
  price: priceSchema.prefault({}),
  fallbacks: z
    .array(id)
    .optional()
    .describe('Models of the same kind that follow, in this order, if no line of this one can serve a call.'),
  cache: z
    .strictObject({
      ttlSeconds: z.int().min(1).max(MAX_TTL_SECONDS).describe('How long an answer is given again.'),
      hitPrice: price.default('0').describe('The price of an answer from the cache.'),
    })
    .optional()
    .describe('Answers exact repetitions of a request. Absent: each is answered anew.'),
})

const line = z.strictObject({
  id,
  provider: id,
  protocol: protocolSchema,
  baseUrl: z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }),
  ...accessMembers,
  region: id.optional(),
  endpoints: z
    .array(endpointSchema)
    .min(1, 'must name at least one endpoint; leave it out for all of the protocol')
    .optional()
    .describe('The endpoints of the line, without /v1/. Absent: all of its protocol.'),
  enabled: z.boolean().default(true),
  priority: z.int().default(0).describe('Lower is tried first.'),
  weight: z.number().min(0).max(1_000_000).default(1),
  models: z
    .record(z.string().min(1), z.string().min(1))
    .describe(
      "The upstream's name of each model, by model id. A pattern such as gpt-* stands for many; its name can be *.",
    ),
  timeouts: z
    .strictObject({
      connectMs: milliseconds.default(2000),
      firstByteMs: milliseconds.default(30_000),
      idleMs: milliseconds.default(60_000),
      totalMs: milliseconds.default(600_000),
    })
    .prefault({}),
  circuit: z
    .strictObject({
      errorPercent: z.number().min(1).max(100).default(50),
      minimumCalls: z.int().min(1).default(5),
      windowMs: milliseconds.default(10_000),
      resetMs: milliseconds.default(10_000),
    })
    .prefault({}),
  headers: z.record(z.string(), z.string()).default({}),
  ...dialectMembers,
  price: priceSchema.prefault({}),
  cost: priceSchema.optional().describe('The price that you pay for its calls. Absent: not known.'),
  features: z.array(featureSchema).optional(),
  contextWindow: z.int().min(1).optional(),
  unsupported: z
    .enum(['refuse', 'drop'])
    .default('refuse')
    .describe('Whether members that cannot be translated for the line are left out, or the call is refused.'),
})

const routing = z.strictObject({
  strategy: z.enum(['priority', 'weighted', 'latency', 'price', 'affinity']).default('priority'),
  maxAttempts: z.int().min(1).max(20).default(3),
  onDisconnect: z.enum(['abort', 'drain']).default('abort'),
  drainMs: milliseconds.default(10_000),
})

const passedOnPrice = z.strictObject({ perRequest: price, perMinute: price }).partial()
const passThrough = z.strictObject({
  path: z.string().startsWith('/'),
  lines: z.array(id).min(1).optional(),
  model: id.optional(),
  price: passedOnPrice.prefault({}),
  cost: passedOnPrice.optional().describe('The price that you pay for an answer and a minute.'),
  sessionMs: milliseconds.default(3_600_000).describe('The longest time of an answer or WebSocket.'),
  methods: z
    .array(z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
    .min(1)
    .optional()
    .describe('The methods that are passed on; any other is not found. GET includes HEAD. All by default.'),
  raw: z
    .boolean()
    .optional()
    .describe(
      'Whether the path takes raw bytes. Absent: where known upstreams do, such as /v1/audio/transcriptions.',
    ),
  secrets: z
    .boolean()
    .optional()
    .describe(
      'Whether callers may get credentials of the upstream, with which they reach it past the gateway.',
    ),
  keeps: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/, { error: 'must be a word such as voice' })
    .optional()
    .describe(
      'The kind of things that the upstream keeps below the path, such as voice. Known without it for OpenAI and Anthropic.',
    ),
})

export const configSchema = z.strictObject({
  $schema: z.string().optional(),
  region: id.default('local'),
  bodyLimitBytes: count.min(1024).default(20_971_520),
  bodyBudgetBytes: count
    .optional()
    .describe('The most bytes of unfinished bodies in a process. Absent: 256 MiB, less in a small process.'),
  uploadsPerKey: count
    .min(1)
    .default(100)
    .describe('The most requests of a key, in a process, whose bodies have not come whole.'),
  authority: z
    .enum(['database', 'config'])
    .default('database')
    .describe('Which rules where the accounts and keys of config and database differ.'),
  accounts: z.array(account).default([]),
  keys: z.array(key).default([]),
  models: z.array(model).min(1),
  lines: z.array(line).min(1),
  routing: routing.prefault({}),
  ...serviceMembers,
  ...guardMembers,
  lookupsPerMinute: count
    .min(1)
    .default(600)
    .describe(
      'How often a key may look things up, such as its models, calls and tasks. They do not count as calls.',
    ),
  onStoreError: z.enum(['local', 'refuse']).default('local'),
  tokens: z
    .enum(['input', 'total'])
    .default('input')
    .describe(
      'The tokens that limits count: the estimated input, or also the true usage once a call has ended.',
    ),
  onLedgerAway: z.enum(['hold', 'deliver']).default('hold'),
  trustProxy: z
    .union([z.boolean(), z.int().min(0), z.string(), z.array(z.string())], {
      error: 'must be false, true, a number of hops, or addresses',
    })
    .default(false)
    .describe("Express's setting: false, a number of hops, or addresses."),
  passThrough: z.array(passThrough).default([]),
})

/** A config file with its defaults filled in. */
export type ParsedConfig = z.output<typeof configSchema>
export type ParsedKey = ParsedConfig['keys'][number]
export type ParsedModel = ParsedConfig['models'][number]
export type ParsedPrice = ParsedModel['price']
export type ParsedLine = ParsedConfig['lines'][number]
export type ParsedRule = ParsedConfig['passThrough'][number]

/** An account as a config file has it: members with a default may be left out. */
export type AccountEntry = z.input<typeof account>
/** A key as a config file has it. */
export type KeyEntry = z.input<typeof key>
