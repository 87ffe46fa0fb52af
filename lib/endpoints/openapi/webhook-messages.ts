import { z } from 'zod'
import type { WebhookEventType } from '../../webhooks/index.ts'
import { jsonSchemaOf, type Part } from './describe-endpoint.ts'

const time = z.iso.datetime()
const amount = z.string().regex(/^-?\d+(\.\d+)?$/)
const line = z.strictObject({ line: z.string() })
const budget = z.strictObject({
  budget: z.string(),
  share: z.number().describe('The share of the amount that is spent.'),
  amount,
  spent: amount,
})

const MESSAGES: Readonly<Record<WebhookEventType, readonly [summary: string, data: z.ZodObject]>> = {
  'budget.threshold': ['A soft share of a budget is spent; once per period', budget],
  'budget.exhausted': ['A budget is spent; once per period', budget],
  'balance.low': [
    'A prepaid balance fell below a tenth of the last deposit',
    z.strictObject({ account: z.string(), balance: amount, threshold: amount }),
  ],
  'key.expiring': [
    'A key ends within seven days',
    z.strictObject({ key: z.string(), account: z.string(), expires_at: time }),
  ],
  'line.down': ['The circuit of a line is open to all', line],
  'line.up': ['The circuit of a line is closed again', line],
  'ledger.away': ['The ledger was away, and is back', z.strictObject({ from: time, until: time })],
  'ticket.opened': [
    'A caller opened a ticket',
    z.strictObject({
      ticket: z.string(),
      account: z.string(),
      key: z.string().nullable(),
      request_id: z.string(),
    }),
  ],
}

/** Returns the schema of the body that tells an event of a type. */
export function messageSchema(type: WebhookEventType): z.ZodObject {
  const [, data] = MESSAGES[type]
  return z.strictObject({ type: z.literal(type), timestamp: time, data })
}

/** Returns the `webhooks` of the document: the requests that receivers get. */
export function describeMessages(): Part {
  return Object.fromEntries(
    Object.entries(MESSAGES).map(([type, [summary]]) => [type, { post: describe(type, summary) }]),
  )
}

function describe(type: string, summary: string): Part {
  return {
    operationId: type,
    tags: ['Webhooks'],
    summary,
    security: [],
    parameters: HEADERS.map(([name, description]) => {
      return { name, in: 'header', required: true, description, schema: { type: 'string' } }
    }),
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: jsonSchemaOf(messageSchema(type as WebhookEventType), 'output') },
      },
    },
    responses: {
      '2XX': { description: 'Taken.' },
      '410': { description: 'Ends the webhook.' },
      default: { description: 'Sent again, for a day.' },
    },
  }
}

const HEADERS = [
  ['webhook-id', 'The id of the event; the same when it is sent again.'],
  ['webhook-timestamp', 'Seconds since the epoch.'],
  ['webhook-signature', 'As Standard Webhooks defines it.'],
] as const
