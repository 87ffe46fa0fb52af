import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type RetryEvent, type RetryOptions, withRetries } from '../../lib/client/index.ts'
import {
  ANSWER,
  type Answer,
  type AnsweringServer,
  answering,
  fine,
  json,
  post,
  refusal,
} from './scripted-answers.ts'

/**
 * Makes a call on a faked clock: each wait ends when the clock says so, and nothing is sent a millisecond before.
 *
 * @param random what Math.random answers.
 */
async function callOnFakedClock(
  t: TestContext,
  server: AnsweringServer,
  options: RetryOptions = {},
  random = 0.5,
): Promise<{ response: Response; events: RetryEvent[] }> {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 0, 1) })
  t.mock.method(Math, 'random', () => random)
  const events: RetryEvent[] = []
  const onRetry = (event: RetryEvent): void => {
    events.push(event)
    setImmediate(() => {
      const sent = server.sent.length
      t.mock.timers.tick(Math.max(0, event.delayMs - 1))
      assert.equal(server.sent.length, sent)
      setImmediate(() => {
        assert.equal(server.sent.length, sent, 'not sent before its time')
        t.mock.timers.tick(1)
      })
    })
  }
  const response = await withRetries(fetch, { ...options, onRetry })(server.url, post())
  return { response, events }
}

const delays = (events: readonly RetryEvent[]): number[] => events.map(({ delayMs }) => delayMs)
const failing: Answer = refusal(502, 'upstream_error', { 'x-request-id': 'req_7' })

describe('the waits between attempts', () => {
  for (const [random, expected] of [
    [0.5, [1000, 2000, 4000]],
    [0, [800, 1600, 3200]],
    [1, [1200, 2400, 4800]],
    [0.75, [1100, 2200, 4400]],
  ] as const) {
    it(`are 1 s × 2, varied by up to 20 %: ${expected.join(', ')} ms`, async (t) => {
      const server = await answering(t, failing)
      const { response, events } = await callOnFakedClock(t, server, {}, random)
      assert.deepEqual(delays(events).map(Math.round), expected)
      assert.equal(server.sent.length, 4, 'four attempts in all')
      assert.equal(response.status, 502)
    })
  }

  for (const [name, headers, expected] of [
    ['Retry-After in seconds', { 'retry-after': '7' }, 7000],
    ['retry-after-ms, which is more exact', { 'retry-after': '3', 'retry-after-ms': '2500' }, 2500],
    ['Retry-After as a date', { 'retry-after': 'Thu, 01 Jan 2026 00:00:12 GMT' }, 12_000],
    ['their own, when Retry-After cannot be read', { 'retry-after': 'soon' }, 1000],
    ['their own, when it is below zero', { 'retry-after': '-5' }, 1000],
  ] as const) {
    it(`are those of ${name}`, async (t) => {
      const server = await answering(t, refusal(429, 'rate_limited', headers), fine)
      const { response, events } = await callOnFakedClock(t, server)
      assert.deepEqual(delays(events), [expected])
      assert.deepEqual(await response.json(), ANSWER)
    })
  }

  it('are zero for a date that has passed', async (t) => {
    const past = { 'retry-after': 'Wed, 31 Dec 2025 23:59:59 GMT' }
    const server = await answering(t, refusal(503, 'circuit_open', past), fine)
    const { events } = await callOnFakedClock(t, server)
    assert.deepEqual(delays(events), [0])
  })

  it('are zero for empty_completion, and then the same as others', async (t) => {
    const empty = refusal(502, 'empty_completion')
    const server = await answering(t, empty, empty, failing, fine)
    const { response, events } = await callOnFakedClock(t, server)
    assert.deepEqual(delays(events), [0, 0, 4000])
    assert.equal(response.status, 200)
  })

  it('of more than a minute do not happen: the answer is returned', async (t) => {
    const server = await answering(t, refusal(503, 'circuit_open', { 'retry-after': '61' }))
    const response = await withRetries(fetch)(server.url, post())
    assert.equal(response.headers.get('retry-after'), '61')
    assert.equal(server.sent.length, 1)
  })

  it('are reported, with the failure', async (t) => {
    const server = await answering(t, failing, (res) => void res.destroy(), fine)
    const { events } = await callOnFakedClock(t, server)
    const { 'idempotency-key': key } = server.sent[0]?.headers ?? {}
    const common = { method: 'POST', url: `${server.url}/`, idempotencyKey: key }
    assert.deepEqual(
      events.map(({ error: _, ...event }) => event),
      [
        { ...common, attempt: 1, delayMs: 1000, status: 502, code: 'upstream_error', requestId: 'req_7' },
        { ...common, attempt: 2, delayMs: 2000, status: null, code: null, requestId: null },
      ],
    )
    assert.ok(events[1]?.error instanceof TypeError, 'what fetch threw')
  })

  it('continue beyond the attempts while a key is in use, for the time in the options', async (t) => {
    const inUse = refusal(409, 'idempotency_key_in_use', { 'retry-after-ms': '1', 'x-should-retry': 'true' })
    const patient = await answering(t, ...Array.from({ length: 9 }, () => inUse), fine)
    const response = await withRetries(fetch, { keyWaitMs: 60_000 })(patient.url, post())
    assert.equal(response.status, 200)
    assert.equal(patient.sent.length, 10)
    const keys = new Set(patient.sent.map(({ headers }) => headers['idempotency-key']))
    assert.equal(keys.size, 1)

    const impatient = await answering(t, inUse)
    assert.equal((await withRetries(fetch)(impatient.url, post())).status, 409)
    assert.equal(impatient.sent.length, 4)
  })
})

describe('an unusable option', () => {
  for (const [option, value] of [
    ['attempts', 0],
    ['attempts', 1.5],
    ['firstDelayMs', -1],
    ['factor', 0.5],
    ['jitter', 2],
    ['longestWaitMs', Number.NaN],
    ['keyWaitMs', -1],
    ['attempts', null],
    ['factor', '2'],
    ['bufferStreams', 'no'],
    ['newIdempotencyKey', 'key'],
    ['callLogUrl', '/v1/calls'],
    ['onRetry', {}],
    ['attempt', 3],
  ] as const) {
    it(`${option}: ${value} is refused at once`, () => {
      assert.throws(() => withRetries(fetch, { [option]: value }), {
        name: 'TypeError',
        message: new RegExp(`^withRetries: .*"${option}"`),
      })
    })
  }

  it('is refused at once if the options are not an object', () => {
    for (const options of [null, 4, 'attempts', []])
      assert.throws(() => withRetries(fetch, options as never), {
        name: 'TypeError',
        message: 'withRetries: its options must be an object, such as { attempts: 4 }',
      })
  })

  it('such as a fetch that is not a function is refused at once', () => {
    assert.throws(() => withRetries('https://a.test' as never), {
      name: 'TypeError',
      message: /must be a fetch/,
    })
  })

  it('that is undefined has its default', async (t) => {
    const server = await answering(t, json(200, {}))
    const options = JSON.parse('{}') as RetryOptions
    assert.equal((await withRetries(fetch, options)(server.url)).status, 200)
  })
})

it('a wait longer than the maximum of a timer does not end at once', async (t) => {
  const server = await answering(t, refusal(429, 'rate_limited', { 'retry-after': '2592000' }), fine)
  const leaving = new AbortController()
  const options = {
    longestWaitMs: Number.POSITIVE_INFINITY,
    onRetry: () => setTimeout(() => leaving.abort(), 100),
  }
  const asked = withRetries(fetch, options)(server.url, { ...post(), signal: leaving.signal })
  await assert.rejects(asked, { name: 'AbortError' })
  assert.equal(server.sent.length, 1)
})
