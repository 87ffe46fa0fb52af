import type { TestContext } from 'node:test'
import { type CallLogEntry, SharedEntries } from '../../../lib/middleware/call-log/index.ts'

let serial = 0

export function entry(extra: Partial<CallLogEntry>): CallLogEntry {
  return {
    id: `req_${serial++}`,
    object: 'call',
    created_at: '2026-01-01T00:00:00.000Z',
    duration_ms: 1,
    account: 'acme',
    key: 'k',
    client_ip: null,
    client_request_id: null,
    method: 'POST',
    path: '/v1/chat/completions',
    protocol: 'openai',
    model: null,
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
    ...extra,
  }
}

/** Writes into a list, on a faked clock. */
export function shared(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let now = 1000
  // A mocked method notes each of its calls, which is slow for so many.
  const real = performance.now
  performance.now = () => now
  t.after(() => {
    performance.now = real
  })
  const written: CallLogEntry[] = []
  const entries = new SharedEntries({ add: (each) => void written.push(each) })
  const tick = (ms: number) => {
    for (let done = 0; done < ms; done += 1000) {
      now += 1000
      t.mock.timers.tick(1000)
    }
  }
  const told = () => written.splice(0).reduce((sum, { repeats = 0 }) => sum + 1 + repeats, 0)
  return { entries, written, tick, told }
}

export const LOOKUP = { method: 'GET', path: '/v1/calls/req_1' } as const
