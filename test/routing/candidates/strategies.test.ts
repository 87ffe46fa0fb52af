import assert from 'node:assert/strict'
import { before, beforeEach, describe, it, type TestContext } from 'node:test'
import type { RouteOptions } from '../../../lib/middleware/route/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { exchange, gatewayFor, OPENAI } from '../../support/exchange.ts'
import type { TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

describe('a strategy', () => {
  let upstream: ScriptedUpstream
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
  })
  beforeEach(() => {
    upstream.script = (res) => chatAnswer(res)
    upstream.requests.length = 0
  })

  const over = (t: TestContext, lines: object[], strategy: RouteOptions['strategy'] = 'priority') =>
    gatewayFor(t, {
      lines: lines.map((line) => ({ url: upstream.url, ...line })),
      config: {},
      route: { strategy, maxAttempts: 20 },
    })
  /** The lines of a call, in the order tried; all fail, so that the order shows. */
  async function order(gateway: TestGateway, extra = {}): Promise<string[]> {
    upstream.script = (res) => answerJson(res, 500, {})
    const { routing } = await gateway.entry((await exchange(gateway, OPENAI, extra)).requestId)
    return routing?.attempts.map(({ line }) => line) ?? []
  }
  /** The line that answers a call. */
  async function chosen(gateway: TestGateway, extra = {}): Promise<string> {
    const { routing } = await gateway.entry((await exchange(gateway, OPENAI, extra)).requestId)
    assert.equal(routing?.attempts.length, 1)
    return routing?.attempts[0]?.line ?? ''
  }
  const saying = (i: number) => ({ messages: [{ role: 'user', content: `prompt ${i}` }] })

  it('"priority": lowest number first, weight breaks ties, then the order of the config', async (t) => {
    const gateway = await over(t, [
      { id: 'c', priority: 1, weight: 1 },
      { id: 'e', priority: 2 },
      { id: 'b', priority: 1, weight: 5 },
      { id: 'a', priority: 0, weight: 0 },
      { id: 'd', priority: 1, weight: 1 },
    ])
    assert.deepEqual(await order(gateway), ['a', 'b', 'c', 'd', 'e'])
  })

  it('"weighted": in proportion to the weights, weight 0 last', async (t) => {
    const gateway = await over(
      t,
      [
        { id: 'none', weight: 0 },
        { id: 'one', weight: 1 },
        { id: 'three', weight: 3 },
      ],
      'weighted',
    )
    const CALLS = 200
    const counts: Record<string, number> = { none: 0, one: 0, three: 0 }
    for (let i = 0; i < CALLS; i += 40) {
      const lines = await Promise.all(Array.from({ length: 40 }, () => chosen(gateway)))
      for (const line of lines) counts[line] = (counts[line] ?? 0) + 1
    }
    assert.equal(counts.none, 0)
    // Expected 50 with a standard deviation of 6: this fails once in more than a million runs.
    assert.ok(counts.one && counts.one > 20 && counts.one < 80, JSON.stringify(counts))
    assert.equal((await order(gateway)).at(-1), 'none')
  })

  it('"latency": the faster line, and the other one while calls pile up on it', async (t) => {
    const waits: Record<string, number> = { slow: 200, fast: 20 }
    upstream.script = (res, { headers }) =>
      void setTimeout(() => chatAnswer(res), waits[String(headers['x-line'])])
    const gateway = await over(
      t,
      ['slow', 'fast'].map((id) => ({ id, headers: { 'x-line': id } })),
      'latency',
    )
    const first = [await chosen(gateway), await chosen(gateway)]
    assert.deepEqual(first, ['slow', 'fast'], 'a line not yet measured is tried first')
    assert.equal(await chosen(gateway), 'fast')
    const hold = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      await hold.promise
      chatAnswer(res)
    }
    const piled: Promise<string>[] = []
    const seen = upstream.requests.length
    for (let i = 0; i < 20; i++) {
      piled.push(chosen(gateway))
      await until(() => upstream.requests.length === seen + i + 1)
    }
    hold.resolve()
    const lines = await Promise.all(piled)
    assert.equal(lines[0], 'fast')
    assert.ok(lines.includes('slow'), 'twenty at once do not all wait for the fast one')
  })

  it('"latency": a line that was slow once is tried again after a while', async (t) => {
    const gateway = await over(t, [{ id: 'slow' }, { id: 'fast' }], 'latency')
    const [slow, fast] = gateway.config.catalog.lines.map((line) => gateway.lines.stateOf(line))
    slow?.observeFirstByte(1000)
    fast?.observeFirstByte(20)
    assert.equal(await chosen(gateway), 'fast')
    const now = performance.now()
    t.mock.method(performance, 'now', () => now + 60_000)
    fast?.observeFirstByte(20)
    const chosenThen = await chosen(gateway)
    t.mock.restoreAll()
    assert.equal(chosenThen, 'slow')
  })

  it('"price": the cheapest for the tokens of the call', async (t) => {
    const gateway = await over(
      t,
      [
        { id: 'dear', price: { inputPerMillion: '10', outputPerMillion: '10' } },
        { id: 'cheap', price: { inputPerMillion: '1', outputPerMillion: '1' } },
        { id: 'middle', price: { inputPerMillion: '5', outputPerMillion: '2' } },
        { id: 'flat', price: { perRequest: '1' } },
      ],
      'price',
    )
    assert.deepEqual(await order(gateway), ['cheap', 'middle', 'dear', 'flat'])
  })

  it('"price" and "max_price" go by the tier that the input of the call reaches', async (t) => {
    const tiers = [{ aboveInputTokens: 1000, inputPerMillion: '9', outputPerMillion: '9' }]
    const gateway = await over(
      t,
      [
        { id: 'tiered', price: { inputPerMillion: '1', outputPerMillion: '1', tiers } },
        { id: 'even', price: { inputPerMillion: '5', outputPerMillion: '5' } },
      ],
      'price',
    )
    const long = { messages: [{ role: 'user', content: 'many words '.repeat(2000) }] }
    assert.deepEqual(await order(gateway), ['tiered', 'even'])
    assert.deepEqual(await order(gateway, long), ['even', 'tiered'])
    const provider = { max_price: { prompt: 6 } }
    assert.deepEqual(await order(gateway, { provider }), ['tiered', 'even'])
    assert.deepEqual(await order(gateway, { ...long, provider }), ['even'])
  })

  it('"price" counts the web searches that a call may ask of the provider', async (t) => {
    const tokens = (price: string) => ({ inputPerMillion: price, outputPerMillion: price })
    const gateway = await over(
      t,
      [
        { id: 'searches-dear', price: { ...tokens('1'), perWebSearch: '0.03' } },
        { id: 'searches-cheap', price: { ...tokens('2'), perWebSearch: '0.01' } },
      ],
      'price',
    )
    assert.deepEqual(await order(gateway), ['searches-dear', 'searches-cheap'])
    const search = { web_search_options: {} }
    assert.deepEqual(await order(gateway, search), ['searches-cheap', 'searches-dear'])
  })

  it('"affinity": the same line for the same beginning, spread over the lines by it', async (t) => {
    const gateway = await over(t, [{ id: 'a' }, { id: 'b' }, { id: 'c' }], 'affinity')
    const lines = await Promise.all(Array.from({ length: 60 }, (_, i) => chosen(gateway, saying(i))))
    for (const line of ['a', 'b', 'c']) assert.ok(lines.filter((one) => one === line).length >= 5, line)
    const again = await Promise.all(Array.from({ length: 60 }, (_, i) => chosen(gateway, saying(i))))
    assert.deepEqual(again, lines)
  })

  it('"affinity": a lost line moves its own prompts only', async (t) => {
    const ids = ['a', 'b', 'c']
    const all = await over(
      t,
      ids.map((id) => ({ id })),
      'affinity',
    )
    const less = await over(
      t,
      ids.map((id) => ({ id, enabled: id !== 'b' })),
      'affinity',
    )
    const prompts = Array.from({ length: 60 }, (_, i) => i)
    const before = await Promise.all(prompts.map((i) => chosen(all, saying(i))))
    const after = await Promise.all(prompts.map((i) => chosen(less, saying(i))))
    for (const i of prompts) {
      if (before[i] === 'b') assert.notEqual(after[i], 'b')
      else assert.equal(after[i], before[i])
    }
    const moved = new Set(prompts.filter((i) => before[i] === 'b').map((i) => after[i]))
    assert.deepEqual([...moved].sort(), ['a', 'c'], 'they are spread over those that are left')
  })

  it('may be a function, whose name is traced; lines that it omits are not tried', async (t) => {
    const gateway = await over(
      t,
      [{ id: 'a' }, { id: 'b' }, { id: 'c' }],
      function backwards(candidates, call) {
        assert.equal(call.model, 'chat')
        return candidates.toReversed().filter(({ line }) => line.id !== 'b')
      },
    )
    assert.deepEqual(await order(gateway), ['c', 'a'])
    const got = await exchange(gateway)
    assert.equal((await gateway.entry(got.requestId)).routing?.strategy, 'backwards')
  })

  it('that returns no line results in no_candidate', async (t) => {
    const gateway = await over(t, [{ id: 'a' }], () => [])
    const got = await exchange(gateway)
    assert.equal(got.errorCode, 'no_candidate')
    assert.equal(upstream.requests.length, 0)
  })

  it('that throws results in internal_error, without the reason', async (t) => {
    const gateway = await over(t, [{ id: 'a' }], () => {
      throw new Error('a secret of the strategy')
    })
    const got = await exchange(gateway)
    assert.equal(got.status, 500)
    assert.equal(got.errorCode, 'internal_error')
    assert.doesNotMatch(got.text, /secret/)
    assert.equal(gateway.logged.length, 1)
    await until(() => gateway.openCalls.size === 0)
  })
})
