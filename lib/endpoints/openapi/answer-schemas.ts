import { z } from 'zod'
import { ACCOUNT_STATUSES } from '../admin/accounts/account-store.ts'
import { share } from '../admin/regions/region-routes.ts'
import { VIDEO_TASK_STATES } from '../admin/videos/video-tasks-view.ts'
import { TICKET_STATUSES } from '../tickets/ticket-store.ts'
import { call } from './call-schema.ts'

const time = z.iso.datetime()
const amount = z.string().describe('A decimal string.')
const names = z.array(z.string()).nullable()
const limit = z.int().nullable()
const warnings = z.array(z.string()).describe('What the settings name that does not exist.')

export const listOf = <T extends z.ZodType>(row: T) =>
  z.object({
    object: z.literal('list'),
    data: z.array(row),
    next_cursor: z
      .string()
      .nullable()
      .describe('The cursor of the next page; null on the last one. A page before it may be short or empty.'),
  })

export const account = z.strictObject({
  id: z.string(),
  object: z.literal('account'),
  name: z.string().nullable(),
  status: z.enum(ACCOUNT_STATUSES),
  prepaid: z.boolean(),
  deposited: amount,
  spent: amount,
  balance: amount,
  leased: amount,
  available: amount,
  limits: z.object({ rpm: limit, tpm: limit, concurrency: limit }),
  regions: names,
  line_regions: names,
  warnings,
  created_at: time,
  home: z.string().nullable().optional().describe('Only of one account, where there are several regions.'),
  shares: z.array(share).optional(),
})

/** An account as the holders of its keys see it. */
export const ownAccount = account
  .omit({ name: true, status: true, regions: true, line_regions: true, warnings: true, created_at: true })
  .omit({ home: true, shares: true })
  .extend({
    key: z.strictObject({ id: z.string(), limits: z.strictObject({ rpm: limit, tpm: limit }) }),
  })

export const deposit = z.strictObject({
  object: z.literal('deposit'),
  account: z.string(),
  amount,
  reference: z.string(),
  created_at: time,
})

export const adjustment = deposit.extend({ object: z.literal('adjustment'), reason: z.string() })

export const lease = z.strictObject({
  id: z.string(),
  object: z.literal('lease'),
  wallet: z.string(),
  owner: z.string(),
  held: amount,
  renewed_at: time,
})

export const ledgerCheck = z.strictObject({
  object: z.literal('ledger_check'),
  violations: z.array(z.string()),
  accounts: z.int(),
  charges: z.int(),
  deposited: amount,
  spent: amount,
  leased: amount,
})

export const key = z.strictObject({
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
  limits: z.object({ rpm: limit, tpm: limit }),
  warnings,
  previous_secret_expires_at: time.nullable().describe('null: only the current secret is valid.'),
  last_used_at: time.nullable().describe('To about a minute; null: never.'),
  created_at: time,
})

export const keyWithSecret = key.extend({ secret: z.string().describe('Sent once, in this answer only.') })

/** What is answered once an object is deleted. */
export const deleted = (object: string) =>
  z.strictObject({ id: z.string(), object: z.literal(object), deleted: z.literal(true) })

/** What callers see of a line. */
const lineOutline = z.strictObject({
  id: z.string(),
  provider: z.string(),
  protocol: z.string(),
  region: z.string().nullable(),
  enabled: z.boolean(),
  priority: z.number(),
  weight: z.number(),
  circuit: z.enum(['closed', 'open', 'half_open']),
})

/** What of a line changes by itself. */
const figures = z.strictObject({
  circuit: lineOutline.shape.circuit,
  retry_after_ms: z.number().nullable(),
  rest_ms: z.number(),
  in_flight: z.int(),
  first_byte_ms: z.number().nullable(),
  tokens_per_second: z.number().nullable(),
  recent_attempts: z.int().describe('In the last minute.'),
  recent_failures: z.int(),
  error_share: z.number().nullable().describe('Share of the attempts in the last minute.'),
  rests: z
    .array(z.strictObject({ model: z.string().nullable(), rest_ms: z.number() }))
    .describe('Models that rest after a 429; null: requests that name no model.'),
  circuits: z
    .array(
      z.strictObject({
        scope: z.enum(['line', 'model']),
        model: z.string().nullable(),
        state: z.enum(['open', 'half_open']),
        account: z.string().nullable().describe('The only account that it is open for. null: for all.'),
        retry_after_ms: z.number().nullable(),
      }),
    )
    .describe('Circuits that are not closed.'),
})

const lineFigures = lineOutline.extend(figures.shape)

export const line = lineFigures.extend({
  object: z.literal('line'),
  workers: z
    .array(figures.partial().extend({ worker: z.int(), pid: z.int(), answered: z.boolean() }))
    .optional()
    .describe(
      'With several workers: the figures of each. A worker that did not answer in time is not part of the other members.',
    ),
  switched: z
    .boolean()
    .nullable()
    .describe('Whether operators switched it on or off; null: the config decides.'),
})

export const change = z.strictObject({
  id: z.string(),
  object: z.literal('change'),
  at: time,
  actor: z.string(),
  action: z.string(),
  subject: z.string(),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
})

export const ticket = z.strictObject({
  id: z.string(),
  object: z.literal('ticket'),
  account: z.string(),
  key: z.string().nullable(),
  request_id: z.string(),
  message: z.string(),
  status: z.enum(TICKET_STATUSES),
  reply: z.string().nullable(),
  created_at: time,
  updated_at: time,
})

export const ticketWithCall = ticket.extend({ call: call.nullable() })

export const videoTask = z.strictObject({
  id: z.string(),
  object: z.literal('video_task'),
  request_id: z.string().describe('The call that created it.'),
  account: z.string(),
  key: z.string().nullable(),
  model: z.string(),
  protocol: z.string(),
  line: z.string(),
  upstream_model: z.string(),
  upstream_id: z.string().nullable(),
  state: z.enum(VIDEO_TASK_STATES),
  progress: z.number().nullable().describe('In percent.'),
  held: amount,
  charged: amount.nullable(),
  error_code: z.string().nullable(),
  missing_since: time.nullable().describe('Since when the line does not know it.'),
  created_at: time,
  updated_at: time,
  finished_at: time.nullable(),
})

/** It has the members of both official APIs. */
export const model = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  type: z.literal('model'),
  display_name: z.string(),
  created: z.int(),
  created_at: time,
  owned_by: z.string(),
  kind: z.string(),
  context_window: z.int().nullable().describe('null: not restricted.'),
  max_output_tokens: z.int().nullable(),
  features: names,
})

export const models = z.strictObject({
  object: z.literal('list'),
  data: z.array(model),
  has_more: z.literal(false),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
})

const routingOf = (candidate: z.ZodType) =>
  z.strictObject({ object: z.literal('routing'), model: z.string(), candidates: z.array(candidate) })

export const routing = routingOf(lineOutline)
export const routingWithFigures = routingOf(lineFigures)

export const health = z.strictObject({
  status: z.string(),
  reason: z.string().optional().describe('Why it is not ready: `draining`, `store` or `ledger`.'),
  regions_away: z.array(z.string()).optional().describe('Regions whose databases do not answer.'),
})
