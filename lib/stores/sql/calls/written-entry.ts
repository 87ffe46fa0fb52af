import { type AttemptSummary, type CallLogEntry, CURRENCY } from '../../../core/call/index.ts'
import { NO_TAGS } from '../../../core/catalog/index.ts'

/*
 * The form of entries in their rows: without the members of the most usual call, which are half of an entry. Those that
 * no call has (an empty id, a negative count) are always written; they are here for the order of all members.
 */

const REQUEST: NonNullable<CallLogEntry['request']> = {
  messages: 1,
  tools: 0,
  images: 0,
  max_output_tokens: null,
  estimated_input_tokens: -1,
  provider: null,
}

const ATTEMPT: AttemptSummary = {
  line: '',
  protocol: 'openai',
  upstream_model: '',
  upstream_status: 200,
  outcome: 'completed',
  timeout_phase: null,
  detail: null,
  connect_ms: 0,
  first_byte_ms: -1,
  duration_ms: -1,
}

const USAGE: NonNullable<CallLogEntry['usage']> = {
  input_tokens: -1,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: -1,
  source: 'measured',
}

const BILLING: NonNullable<CallLogEntry['billing']> = {
  currency: CURRENCY,
  reserved: '',
  charged: '',
  required: null,
  available: null,
  items: [],
}

const ENTRY: CallLogEntry = {
  id: '',
  object: 'call',
  created_at: '',
  // Searches read the first duration of the text.
  duration_ms: -1,
  account: '',
  key: '',
  client_ip: '',
  client_request_id: null,
  method: 'POST',
  path: '',
  protocol: 'openai',
  model: '',
  user: null,
  tags: NO_TAGS,
  stream: false,
  status: 200,
  error_code: null,
  outcome: 'completed',
  request: null,
  routing: null,
  usage: null,
  billing: null,
  limit: null,
  idempotency_key: null,
  original_request_id: null,
  response_body: null,
}

/** Returns the text of an entry for its row, without the answer that it keeps. */
export function writeEntry(entry: CallLogEntry): string {
  const { request, routing, usage, billing } = entry
  return JSON.stringify({
    ...unusual(entry, ENTRY),
    response_body: undefined,
    request: request ? unusual(request, REQUEST) : undefined,
    routing: routing
      ? { ...routing, attempts: routing.attempts.map((attempt) => unusual(attempt, ATTEMPT)) }
      : undefined,
    usage: usage ? unusual(usage, USAGE) : undefined,
    billing: billing ? unusual(billing, BILLING) : undefined,
  })
}

/** Returns the entry of a row's text, without the answer that it keeps. */
export function readEntry(text: string): CallLogEntry {
  const written = JSON.parse(text) as Partial<CallLogEntry>
  const { request, routing, usage, billing } = written
  const entry: CallLogEntry = { ...ENTRY, ...written }
  return {
    ...entry,
    request: request ? { ...REQUEST, ...request } : null,
    routing: routing
      ? { ...routing, attempts: routing.attempts.map((attempt) => ({ ...ATTEMPT, ...attempt })) }
      : null,
    usage: usage ? { ...USAGE, ...usage } : null,
    billing: billing ? { ...BILLING, ...billing } : null,
  }
}

/** Returns the members of an object that are not as in the usual one. */
function unusual<T extends object>(given: T, usual: T): Partial<T> {
  const members: Partial<T> = {}
  for (const name in given) if (given[name] !== usual[name]) members[name] = given[name]
  return members
}
