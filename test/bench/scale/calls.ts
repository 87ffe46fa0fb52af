import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { accountWallet, type Settlement } from '../../../lib/ledger/index.ts'
import { accountOf, keyOf } from './rows.ts'

/** A call that has ended, and the lease that pays for it. */
export interface CallOfLease {
  readonly id: string
  readonly account: number
  readonly lease: string
}

const COST = 12_600n
const ITEMS = [
  { unit: 'input', quantity: 44, price: '0.15' },
  { unit: 'output', quantity: 10, price: '0.60' },
] as const

export function settlementOf(call: CallOfLease): Settlement {
  const account = accountOf(call.account)
  return {
    kind: 'charge',
    requestId: call.id,
    account,
    key: keyOf(call.account),
    amount: COST,
    at: Date.now(),
    draws: [{ lease: call.lease, wallet: accountWallet(account), amount: COST }],
    basis: JSON.stringify({ line: 'openai-us', source: 'measured', items: ITEMS }),
    claim: null,
    entry: entryOf(call),
  }
}

/** About 1.1 kB as JSON, as a chat call with one attempt has it. */
export function entryOf({ id, account }: CallOfLease): CallLogEntry {
  return {
    id,
    object: 'call',
    created_at: new Date().toISOString(),
    duration_ms: 812,
    account: accountOf(account),
    key: keyOf(account),
    client_ip: '203.0.113.7',
    client_request_id: null,
    method: 'POST',
    path: '/v1/chat/completions',
    protocol: 'openai',
    model: 'chat-small',
    user: null,
    tags: {},
    stream: false,
    status: 200,
    error_code: null,
    outcome: 'completed',
    request: {
      messages: 2,
      tools: 0,
      images: 0,
      max_output_tokens: 256,
      estimated_input_tokens: 41,
      provider: null,
    },
    routing: {
      region: 'local',
      strategy: 'priority',
      eliminated: [],
      attempts: [
        {
          line: 'openai-us',
          protocol: 'openai',
          upstream_model: 'gpt-4o-mini',
          upstream_status: 200,
          outcome: 'completed',
          timeout_phase: null,
          detail: null,
          connect_ms: 1,
          first_byte_ms: 240,
          duration_ms: 800,
        },
      ],
    },
    usage: {
      input_tokens: 44,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 10,
      source: 'measured',
    },
    billing: {
      currency: 'USD',
      reserved: '0.000161288',
      charged: '0.0000126',
      required: null,
      available: null,
      items: ITEMS,
    },
    limit: null,
    idempotency_key: null,
    original_request_id: null,
    response_body: null,
  }
}
