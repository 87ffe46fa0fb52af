import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { LineState } from '../../../lib/routing/lines/line-state.ts'
import { clockOf } from '../../support/clock.ts'
import { exchange, gatewayFor, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import {
  answerJson,
  chatEvents,
  startUpstream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

/** How a call asks for the order, and what is measured for it. */
const ORDERS = [
  ['the strategy "latency"', {}, (state: LineState) => state.observeFirstByte(20)],
  ['sort: latency', { provider: { sort: 'latency' } }, (state: LineState) => state.observeFirstByte(20)],
  [
    'sort: throughput',
    { provider: { sort: 'throughput' } },
    (state: LineState) => state.observeThroughput(50, 1000),
  ],
] as const

/** Lines that hold their calls until the end of the test; their names are those that an upstream sees. */
async function heldLines(t: TestContext, ids: readonly string[], strategy: 'latency' | 'priority') {
  const hold = Promise.withResolvers<void>()
  const seen: string[] = []
  const upstream = await startUpstream(async (res, { headers }) => {
    seen.push(String(headers['x-line']))
    await hold.promise
    answerJson(res, 400, {})
  })
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, {
    lines: ids.map((id) => ({ id, url: upstream.url, headers: { 'x-line': id } })),
    route: { strategy },
  })
  t.after(() => hold.resolve())
  const states = new Map(
    gateway.config.catalog.lines.map((line) => [line.id, gateway.lines.stateOf(line)] as const),
  )
  return {
    upstream,
    gateway,
    seen,
    state: (id: string) => states.get(id) as LineState,
    /** Makes calls one after another, without their ends. */
    async call(times: number, extra: object = {}): Promise<readonly string[]> {
      const from = seen.length
      for (let i = 0; i < times; i++) {
        void exchange(gateway, OPENAI, { ...extra }).catch(() => {})
        await until(() => seen.length === from + i + 1)
      }
      return seen.slice(from)
    },
  }
}

describe('a line without measurements', () => {
  for (const [name, extra, measure] of ORDERS) {
    const strategy = name.startsWith('the') ? 'latency' : 'priority'

    it(`receives one call at a time beside a measured one: ${name}`, async (t) => {
      clockOf(t).stop()
      const lines = await heldLines(t, ['new', 'known', 'newer'], strategy)
      measure(lines.state('known'))
      assert.deepEqual(await lines.call(8, extra), ['new', 'newer', ...Array(6).fill('known')])
    })

    it(`shares the calls with others if none is measured: ${name}`, async (t) => {
      const lines = await heldLines(t, ['a', 'b', 'c'], strategy)
      assert.deepEqual(await lines.call(6, extra), ['a', 'b', 'c', 'a', 'b', 'c'])
    })

    it(`is treated like others once it is measured: ${name}`, async (t) => {
      clockOf(t).stop()
      const lines = await heldLines(t, ['new', 'known'], strategy)
      measure(lines.state('known'))
      assert.deepEqual(await lines.call(2, extra), ['new', 'known'])
      measure(lines.state('new'))
      const next = await lines.call(4, extra)
      assert.ok(next.filter((id) => id === 'new').length >= 2, `${next}`)
    })
  }

  it('is tried last while it is unmeasured and the measured ones, sorted by throughput, work', async (t) => {
    const lines = await heldLines(t, ['slow', 'new', 'fast'], 'priority')
    lines.state('slow').observeThroughput(10, 1000)
    lines.state('fast').observeThroughput(90, 1000)
    const extra = { provider: { sort: 'throughput' } }
    assert.deepEqual(await lines.call(4, extra), ['new', 'fast', 'fast', 'fast'])
  })
})

describe('the first bytes of an answer', () => {
  const bodies: readonly (readonly [string, typeof OPENAI, UpstreamScript])[] = [
    [
      'a stream',
      OPENAI_STREAM,
      (res) =>
        void res
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .write(chatEvents(['word']).slice(0, 2).join('')),
    ],
    [
      'a plain answer',
      OPENAI,
      (res) => void res.writeHead(200, { 'content-type': 'application/json' }).write('{"id":'),
    ],
  ]
  for (const [what, mode, begin] of bodies) {
    it(`are timed when they arrive, not at the end: ${what}`, async (t) => {
      const lines = await heldLines(t, ['new', 'known'], 'latency')
      lines.state('known').observeFirstByte(60_000)
      lines.upstream.script = (res, request, index) => {
        lines.seen.push(String(request.headers['x-line']))
        return begin(res, request, index)
      }
      const leaving = new AbortController()
      t.after(() => leaving.abort())
      exchange(lines.gateway, mode, {}, { signal: leaving.signal }).catch(() => {})
      await until(() => lines.state('new').firstByteMs !== undefined)
      assert.equal(lines.state('new').inFlight, 1, 'its answer goes on')
      assert.deepEqual(await lines.call(3), ['new', 'new', 'new'], 'faster by its first bytes')
    })
  }

  it('are not timed if the answer is a refusal', async (t) => {
    const lines = await heldLines(t, ['new', 'known'], 'latency')
    lines.state('known').observeFirstByte(20)
    lines.upstream.script = (res) => answerJson(res, 400, { error: { message: 'no' } })
    assert.equal((await exchange(lines.gateway)).status, 400)
    assert.equal(lines.state('new').firstByteMs, undefined)
  })
})
