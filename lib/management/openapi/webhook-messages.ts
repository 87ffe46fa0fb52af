import { messageSchema, WEBHOOK_EVENTS, type WebhookEventType } from '../webhooks/webhook-event.ts'
import { jsonSchemaOf, type Part } from './describe-endpoint.ts'

const SUMMARIES: Readonly<Record<WebhookEventType, string>> = {
  'budget.threshold': 'A soft share of a budget is spent; once per period',
  'budget.exhausted': 'A budget is spent; once per period',
  'balance.low': 'A prepaid balance fell below a tenth of the last deposit',
  'key.expiring': 'A key ends within seven days',
  'line.down': 'No call succeeds on a line',
  'line.up': 'Calls succeed on a line again, or nobody uses it any more',
  'ledger.away': 'The ledger was away, and is back',
  'ticket.opened': 'A caller opened a ticket',
}

/** Returns the `webhooks` of the document: the requests that receivers get. */
export function describeMessages(): Part {
  return Object.fromEntries(WEBHOOK_EVENTS.map((type) => [type, { post: describe(type) }]))
}

function describe(type: WebhookEventType): Part {
  return {
    operationId: type,
    tags: ['Webhooks'],
    summary: SUMMARIES[type],
    security: [],
    parameters: HEADERS.map(([name, description]) => {
      return { name, in: 'header', required: true, description, schema: { type: 'string' } }
    }),
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: jsonSchemaOf(messageSchema(type), 'output') },
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
