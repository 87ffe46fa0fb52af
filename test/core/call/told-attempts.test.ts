import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bytesOfEntry, lineOf } from '../../../lib/core/call/index.ts'
import { NO_TAGS } from '../../../lib/core/catalog/index.ts'
import { entry, START } from './bare-entry.ts'

describe('the attempts in an entry', () => {
  const ROUTE = { region: 'eu', strategy: 'priority' }
  const attempt = (detail: string | null, more: object = {}) => ({
    line: 'line-1',
    protocol: 'openai',
    provider: 'p',
    startedAt: START,
    upstreamModel: 'up',
    upstreamStatus: 503,
    outcome: 'upstream_error',
    timeoutPhase: 'idle',
    detail,
    connectMs: 1,
    firstByteMs: 2,
    durationMs: 3,
    skipped: 0,
    ...more,
  })
  const told = (detail: string | null) => ({
    line: 'line-1',
    protocol: 'openai',
    upstream_model: 'up',
    upstream_status: 503,
    outcome: 'upstream_error',
    timeout_phase: 'idle',
    detail,
    connect_ms: 1,
    first_byte_ms: 2,
    duration_ms: 3,
  })
  const routing = (attempts: object[], eliminated: object[] = [], more: object = {}) =>
    entry({ routing: { ...ROUTE, attempts, eliminated, ...more } }).routing

  it('contain all that is known of each', () => {
    const rare = { upstreamError: { code: 'x' }, skipped: 2, dropped: ['n'] }
    const summary = { upstream_error: { code: 'x' }, skipped: 2, dropped: ['n'] }
    assert.deepEqual(routing([attempt('a')]), { ...ROUTE, eliminated: [], attempts: [told('a')] })
    assert.deepEqual(routing([attempt(null, rare)])?.attempts, [{ ...told(null), ...summary }])
    assert.deepEqual(routing([attempt('a'), attempt('b')]), {
      ...ROUTE,
      eliminated: [],
      attempts: [told('a'), told('b')],
    })
    const disconnect = { policy: 'abort', ended: 'aborted' }
    assert.deepEqual(routing([], [], { retryBudgetSpent: true, disconnect }), {
      ...ROUTE,
      eliminated: [],
      attempts: [],
      retry_budget_spent: true,
      disconnect,
    })
  })

  it('are limited in number, and lines that were not tried use the rest of the limit', () => {
    const kilobyte = attempt('x'.repeat(1024 - Buffer.byteLength(JSON.stringify(told('')))))
    const row = (line: string) => ({ line, reason: 'region', detail: '' })
    const hundred = row('x'.repeat(100 - Buffer.byteLength(JSON.stringify(row('')))))
    const counts = (attempts: number, eliminated: number) => {
      const summary = routing(Array(attempts).fill(kilobyte), Array(eliminated).fill(hundred))
      return [
        summary?.attempts.length,
        summary?.attempts_omitted,
        summary?.eliminated.length,
        summary?.eliminated_omitted,
      ]
    }
    assert.deepEqual(counts(4, 20), [4, undefined, 20, undefined])
    assert.deepEqual(counts(5, 21), [4, 1, 20, 1])
    assert.deepEqual(counts(0, 61), [0, undefined, 61, undefined])
    assert.deepEqual(counts(0, 62), [0, undefined, 61, 1])
    assert.deepEqual(counts(1, 51), [1, undefined, 51, undefined])
    assert.deepEqual(counts(1, 60), [1, undefined, 51, 9])
    const attemptOf = (bytes: number) =>
      attempt('x'.repeat(bytes - Buffer.byteLength(JSON.stringify(told('')))))
    const rowOf = (bytes: number) => row('x'.repeat(bytes - Buffer.byteLength(JSON.stringify(row('')))))
    const bare = attempt(null)
    assert.equal(routing([attemptOf(2048), attemptOf(2048)])?.attempts_omitted, undefined)
    assert.equal(routing([attemptOf(2048), attemptOf(2049)])?.attempts_omitted, 1)
    assert.equal(routing([], [rowOf(6144)])?.eliminated_omitted, undefined)
    assert.equal(routing([], [rowOf(6145)])?.eliminated_omitted, 1)
    assert.equal(
      routing([bare], [rowOf(6144 - Buffer.byteLength(JSON.stringify(told(null))))])?.eliminated.length,
      1,
    )
    const longest = attempt('x'.repeat(5000))
    assert.deepEqual(routing([longest, longest])?.attempts_omitted, 2)
    assert.equal(routing([longest])?.attempts.length, 1, 'the only one is told in any case')
  })

  it('contain the line of the last attempt', () => {
    assert.equal(lineOf(entry()), null)
    assert.equal(lineOf({ routing: routing([]) ?? null }), null)
    assert.equal(
      lineOf({ routing: routing([attempt('a'), attempt('b', { line: 'line-2' })]) ?? null }),
      'line-2',
    )
  })
})

describe('the memory of an entry', () => {
  it('is about the sum of its parts', () => {
    const none = { routing: null, request: null }
    const routing = (eliminated: number, attempts: number) => ({
      ...none,
      routing: { eliminated: Array(eliminated).fill(0), attempts: Array(attempts).fill(0) },
    })
    const rows: [bytes: number | boolean, expected: number | boolean][] = [
      [bytesOfEntry(none), 2048],
      [bytesOfEntry(none, 100), 2148],
      [bytesOfEntry({ ...none, response_body: 'x'.repeat(50) }), 2098],
      [bytesOfEntry({ ...none, response_body: null }), 2048],
      [bytesOfEntry({ ...none, response_body: 'xx' }, 7), 2055],
      [bytesOfEntry({ ...none, request: {} }), 2048],
      [bytesOfEntry({ ...none, request: { provider: {} } }), 4096],
      [bytesOfEntry({ ...none, tags: { a: 'b' } }) > bytesOfEntry(none), true],
      [bytesOfEntry({ ...none, tags: NO_TAGS }), 2048],
      [bytesOfEntry({ ...none, tags: null }), 2048],
      [bytesOfEntry(routing(3, 2)), 2048 + 200 * 3 + 400 * 2],
      [bytesOfEntry(routing(300, 2)), 2048 + 6 * 1024],
    ]
    for (const [bytes, expected] of rows) assert.equal(bytes, expected)
  })
})
