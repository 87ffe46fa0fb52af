import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { exchange, gatewayFor, OPENAI_STREAM } from '../../support/exchange.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { closedCircuit, fails, openCircuit, stateOf } from '../support/circuit-line.ts'

const breaksOff: UpstreamScript = async (res) => {
  await stream(res, chatEvents(['Hello']).slice(0, 2), { paceMs: 5, end: false })
  res.socket?.resetAndDestroy()
}

describe('the circuit of a line', () => {
  it('stays closed below the minimum of calls', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 4 })
    upstream.script = fails
    for (let i = 0; i < 3; i++) await exchange(gateway)
    assert.equal(stateOf(gateway), 'closed')
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'open')
  })

  it('opens at exactly the threshold, and not below it', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 5 })
    for (const good of [false, true, true, true, false]) {
      upstream.script = good ? (res) => chatAnswer(res) : fails
      await exchange(gateway)
    }
    assert.equal(stateOf(gateway), 'closed', '40 %')
    upstream.script = fails
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'open', '50 %')
  })

  it('forgets what lies before its window', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 2, windowMs: 100 })
    upstream.script = fails
    await exchange(gateway)
    await sleep(250)
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'closed')
  })

  it('refuses with circuit_open and the time until the probe, without asking the line', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 1, resetMs: 30_000 })
    upstream.script = fails
    await exchange(gateway)
    const got = await exchange(gateway)
    assert.equal(got.status, 503)
    assert.equal(got.errorCode, 'circuit_open')
    const seconds = Number(got.headers.get('retry-after'))
    assert.ok(seconds > 20 && seconds <= 30, `${seconds}`)
    assert.equal(upstream.requests.length, 1)
    const entry = await gateway.entry(got.requestId)
    assert.deepEqual(entry.routing?.eliminated, [{ line: 'line-0', reason: 'circuit_open', detail: 'open' }])
    assert.equal(entry.outcome, 'refused')
  })

  it('is returned in the routing of the model', async (t) => {
    const { gateway } = await openCircuit(t)
    const response = await gateway.post('/v1/models/chat/routing', undefined, { method: 'GET' })
    assert.match(await response.text(), /"open"/)
  })

  it('counts neither a 429 nor a refusal of the request', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 1 })
    for (const status of [429, 400, 413, 422]) {
      upstream.script = (res) => answerJson(res, status, {})
      await exchange(gateway)
      assert.equal(stateOf(gateway), 'closed')
      gateway.lines.liftRests('line-0')
    }
    // They are no successes either: one failure is 100 % of one.
    upstream.script = fails
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'open')
  })

  it('is opened by answers that are interrupted after their first output', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 5 })
    upstream.script = breaksOff
    for (let i = 0; i < 2; i++) await exchange(gateway, OPENAI_STREAM)
    assert.equal(stateOf(gateway), 'closed', 'two failures')
    await exchange(gateway, OPENAI_STREAM)
    assert.equal(stateOf(gateway), 'open', 'they are half of the calls')
  })

  it('counts an interruption after the window of its first output', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, {
      minimumCalls: 2,
      errorPercent: 100,
      windowMs: 300,
    })
    upstream.script = async (res) => {
      await stream(res, chatEvents(['Hello']).slice(0, 2), { end: false })
      await sleep(400)
      res.socket?.resetAndDestroy()
    }
    await Promise.all([exchange(gateway, OPENAI_STREAM), exchange(gateway, OPENAI_STREAM)])
    assert.equal(stateOf(gateway), 'open')
  })

  it('of one line does not affect the others', async (t) => {
    const upstream = await startUpstream(fails)
    const other = await startUpstream()
    t.after(() => Promise.all([upstream.close(), other.close()]))
    const gateway = await gatewayFor(t, {
      lines: [{ url: upstream.url, circuit: { minimumCalls: 1, resetMs: 30_000 } }, { url: other.url }],
    })
    for (let i = 0; i < 3; i++) assert.equal((await exchange(gateway)).status, 200)
    assert.equal(upstream.requests.length, 1)
    assert.equal(other.requests.length, 3)
  })
})
