import { z } from 'zod'
import type { CallLogEntry } from '../../core/call/index.ts'
import { amount, time } from '../../core/json-api/index.ts'

/** Schemas for all members of a type, so that none is forgotten. */
type Members<T> = { readonly [Name in keyof Required<T>]: z.ZodType }
type Part<Name extends keyof CallLogEntry> = NonNullable<CallLogEntry[Name]>

const text = z.string().nullable()

const request = {
  messages: z.int(),
  tools: z.int(),
  images: z.int(),
  max_output_tokens: z.int().nullable(),
  estimated_input_tokens: z.int(),
  provider: z.unknown().describe("The caller's provider constraint; null without one."),
} satisfies Members<Part<'request'>>

const triedModel = z
  .string()
  .optional()
  .describe('The model for which the line was considered. Absent if the call had no fallback model.')

const elimination = {
  line: z.string(),
  model: triedModel,
  reason: z.string(),
  detail: z.string(),
} satisfies Members<Part<'routing'>['eliminated'][number]>

const upstreamError = { type: text, code: text, param: text, message: text } satisfies Members<
  NonNullable<Part<'routing'>['attempts'][number]['upstream_error']>
>

const attempt = {
  line: z.string(),
  protocol: z.string(),
  model: triedModel,
  upstream_model: text,
  upstream_status: z.int().nullable(),
  outcome: z.string(),
  timeout_phase: text.describe('The clock that ended it.'),
  detail: text,
  upstream_error: z.looseObject(upstreamError).optional().describe("The upstream's own error."),
  connect_ms: z.number().nullable(),
  first_byte_ms: z.number().nullable(),
  duration_ms: z.number(),
  skipped: z.int().optional().describe('Parts that a translation of the answer left out.'),
  dropped: z.array(z.string()).optional().describe('Members that a translation of the request left out.'),
  finish_reason: z
    .string()
    .optional()
    .describe('Why the answer ended: such as `length`, or `other` if unknown. Absent if it is complete.'),
} satisfies Members<Part<'routing'>['attempts'][number]>

const routing = {
  region: z.string(),
  strategy: z.string(),
  eliminated: z.array(z.looseObject(elimination)).describe('Lines that a filter removed.'),
  eliminated_omitted: z.int().optional(),
  attempts: z.array(z.looseObject(attempt)),
  attempts_omitted: z.int().optional(),
  retry_budget_spent: z.literal(true).optional().describe('A retry was withheld.'),
  disconnect: z
    .looseObject({ policy: z.string(), ended: z.string() })
    .optional()
    .describe('The policy that applied when the caller left, and its effect.'),
} satisfies Members<Part<'routing'>>

const counts = {
  input_tokens: z.int(),
  cached_input_tokens: z.int(),
  cache_write_tokens: z.int(),
  cache_write_1h_tokens: z.int().optional(),
  audio_input_tokens: z.int().optional(),
  output_tokens: z.int(),
  audio_output_tokens: z.int().optional(),
  reasoning_tokens: z.int().optional(),
  images: z.int().optional(),
  seconds: z.number().optional().describe('Of video.'),
  search_units: z.number().optional(),
  web_searches: z.int().optional(),
  minutes: z.int().optional(),
  service_tier: z.string().optional().describe('If the line served it in another tier than the usual.'),
}

const usage = {
  ...counts,
  source: z.enum(['measured', 'estimated', 'bounded']),
  reported: z
    .looseObject(counts)
    .partial()
    .optional()
    .describe('The counts that the line reported, if they were bounded.'),
} satisfies Members<Part<'usage'>>

const billing = {
  currency: z.string(),
  reserved: amount.nullable(),
  charged: amount.nullable(),
  cost: amount.optional().describe("The operator's cost. For operators only."),
  required: amount.nullable().describe('The amount that a refused call needed.'),
  available: amount.nullable(),
  budget: z.string().optional().describe('The budget that refused it.'),
  items: z
    .array(z.looseObject({ unit: z.string(), quantity: z.number(), price: amount }))
    .describe('They add up to the charge. Prices are per million for tokens, else for one.'),
} satisfies Members<Part<'billing'>>

const limit = {
  kind: z.string(),
  level: z.string(),
  subject: z.string(),
  limit: z.number(),
  retry_after: z.number().describe('In seconds.'),
} satisfies Members<Part<'limit'>>

const guard = {
  guard: z.string().describe('Its name.'),
  on: z.enum(['input', 'output']),
  decision: z.enum(['allowed', 'replaced', 'refused', 'failed']),
  checks: z.int().describe('How many texts or windows it has checked.'),
  duration_ms: z.number(),
} satisfies Members<NonNullable<CallLogEntry['guards']>[number]>

const entry = {
  id: z.string(),
  object: z.literal('call'),
  created_at: time,
  duration_ms: z.number(),
  account: text,
  key: text,
  client_ip: text,
  client_request_id: text.describe('The X-Request-Id that the caller sent.'),
  method: z.string(),
  path: z.string(),
  protocol: z.string(),
  model: text,
  user: text.optional(),
  tags: z.record(z.string(), z.string()).optional(),
  stream: z.boolean(),
  status: z.int(),
  error_code: text,
  outcome: z.string(),
  request: z.looseObject(request).nullable(),
  routing: z.looseObject(routing).nullable(),
  usage: z.looseObject(usage).nullable(),
  billing: z.looseObject(billing).nullable(),
  limit: z.looseObject(limit).nullable().describe('The limit that refused it.'),
  guards: z
    .array(z.looseObject(guard))
    .optional()
    .describe('The decisions of guards about the request and the answer.'),
  cache: z.enum(['hit', 'miss']).optional().describe('Whether the answer came from the cache.'),
  cached_from: z.string().optional().describe('Of a hit: the call that got the answer first.'),
  idempotency_key: text,
  original_request_id: text.describe('Of a replay: the call that ran.'),
  response_body: text,
  repeats: z.int().optional().describe('Further calls that share the entry.'),
} satisfies Members<Omit<CallLogEntry, 'response_body_parts'>>

/** An entry of the call log. Those of other versions may have further members. */
export const call = z.looseObject(entry)
