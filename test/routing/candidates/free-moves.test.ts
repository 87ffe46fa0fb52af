import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { clockOf } from '../../support/clock.ts'
import { exchange, gatewayFor } from '../../support/exchange.ts'
import {
  answerJson,
  chatAnswer,
  startUpstream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const circuit = { minimumCalls: 1_000_000 }
const fails: UpstreamScript = (res) => answerJson(res, 500, {})
const answers: UpstreamScript = (res) => chatAnswer(res)
const status =
  (code: number): UpstreamScript =>
  (res) =>
    answerJson(res, code, {})

/** Lines whose model has no retry left: the clock stands still, and the calls before have used them up. */
async function withoutRetries(t: TestContext, lines: number, last: object = {}) {
  const clock = clockOf(t)
  clock.stop()
  const upstreams = await Promise.all(Array.from({ length: lines }, () => startUpstream(fails)))
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())))
  const gateway = await gatewayFor(t, {
    lines: upstreams.map(({ url }, i) => ({ url, circuit, ...(i === lines - 1 && last) })),
  })
  const entryOf = async () => {
    const got = await exchange(gateway)
    const { routing } = await gateway.entry(got.requestId)
    return { got, routing }
  }
  const spend = async () => {
    for (let spent = false; !spent; ) spent = (await entryOf()).routing?.retry_budget_spent === true
  }
  await spend()
  return { upstreams, gateway, entryOf, clock, spend }
}

describe('a call whose model has no retries left', () => {
  for (const [what, refuses] of [
    ['429', status(429)],
    ['503', status(503)],
    ['529', status(529)],
    ['401', status(401)],
    ['404', status(404)],
  ] as const) {
    it(`still moves from a line that refused at no cost with ${what}, for any number of calls`, async (t) => {
      const { upstreams, gateway, entryOf } = await withoutRetries(t, 2)
      const [first, second] = upstreams
      assert.ok(first && second)
      first.script = refuses
      second.script = answers
      for (let i = 0; i < 30; i++) {
        const { got, routing } = await entryOf()
        assert.equal(got.status, 200)
        assert.deepEqual(
          routing?.attempts.map(({ line }) => line),
          ['line-0', 'line-1'],
        )
        gateway.lines.liftRests('line-0')
      }
    })
  }

  for (const [what, does] of [
    ['500', status(500)],
    ['502', status(502)],
    ['504', status(504)],
    ['reset', (res) => void res.socket?.resetAndDestroy()],
    ['nonsense', (res) => void res.end('<html>')],
  ] as readonly (readonly [string, UpstreamScript])[]) {
    it(`stays with a line that may have processed it: ${what}`, async (t) => {
      const { upstreams, entryOf } = await withoutRetries(t, 2)
      const [first, second] = upstreams
      assert.ok(first && second)
      first.script = does
      second.script = answers
      const before = second.requests.length
      const { got, routing } = await entryOf()
      assert.equal(got.errorCode, 'upstream_error')
      assert.equal(routing?.retry_budget_spent, true)
      assert.equal(second.requests.length, before)
    })
  }

  it('moves once: the second move is a retry like any other', async (t) => {
    const { upstreams, entryOf } = await withoutRetries(t, 3)
    const [first, second, third] = upstreams
    assert.ok(first && second && third)
    first.script = status(503)
    second.script = status(503)
    third.script = answers
    const before = third.requests.length
    const { got, routing } = await entryOf()
    assert.equal(got.errorCode, 'upstream_overloaded')
    assert.deepEqual(
      routing?.attempts.map(({ line }) => line),
      ['line-0', 'line-1'],
    )
    assert.equal(routing?.retry_budget_spent, true)
    assert.equal(third.requests.length, before)
  })

  it('does not move to a line that has only answered 429 before its rest', async (t) => {
    const { upstreams, gateway, entryOf, clock, spend } = await withoutRetries(t, 2)
    const [first, second] = upstreams
    assert.ok(first && second)
    first.script = status(503)
    second.script = status(429)
    assert.equal((await entryOf()).routing?.attempts.length, 2)
    assert.deepEqual((await entryOf()).routing?.eliminated?.[0]?.reason, 'resting')
    // The rest is over. Nobody knows yet whether the line answers, and the calls have new retries, which they use up.
    clock.pass(2000)
    first.script = second.script = fails
    await spend()
    first.script = status(503)
    second.script = answers
    const before = second.requests.length
    const { got, routing } = await entryOf()
    assert.deepEqual([got.errorCode, routing?.retry_budget_spent], ['upstream_overloaded', true])
    assert.equal(second.requests.length, before)
    // Once it has answered, it is a line like any other.
    clock.pass(1000)
    assert.equal((await entryOf()).got.status, 200)
    first.script = second.script = fails
    await spend()
    first.script = status(503)
    second.script = answers
    assert.equal((await entryOf()).got.status, 200)
    assert.equal(gateway.openCalls.size, 0)
  })

  it('does not move to a line whose circuit waits for a probe', async (t) => {
    const ill = { circuit: { minimumCalls: 1, errorPercent: 50, resetMs: 1 } }
    const { upstreams, gateway, entryOf } = await withoutRetries(t, 2, ill)
    const [first, second] = upstreams
    assert.ok(first && second)
    first.script = status(503)
    second.script = answers
    const [, line] = gateway.config.catalog.lines
    assert.ok(line)
    await until(() => gateway.lines.status(line).circuit === 'half_open')
    const before = second.requests.length
    const { got, routing } = await entryOf()
    assert.deepEqual([got.errorCode, routing?.retry_budget_spent], ['upstream_overloaded', true])
    assert.equal(second.requests.length, before)
  })
})
