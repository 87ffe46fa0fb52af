import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bodyOf, exchange, OPENAI, OPENAI_STREAM, pathOf } from '../../support/exchange.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { answerJson, chatAnswer, chatEvents, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { closedCircuit, fails, openCircuit, RESET_MS, stateOf } from '../support/circuit-line.ts'

describe('the probe of a half-open circuit', () => {
  const halfOpen = (gateway: TestGateway) => until(() => stateOf(gateway) === 'half_open', 'half open')

  it('lets exactly one probe through, and closes when it succeeds', async (t) => {
    const { upstream, gateway } = await openCircuit(t)
    await halfOpen(gateway)
    const probe = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      await probe.promise
      chatAnswer(res)
    }
    const calls = Array.from({ length: 8 }, () => exchange(gateway))
    // All but the probe come back at once.
    let refused = 0
    for (const call of calls) void call.then(({ status }) => (refused += status === 503 ? 1 : 0))
    await until(() => refused === 7)
    assert.equal(upstream.requests.length, 2, 'the failure, and the probe')
    probe.resolve()
    const answers = await Promise.all(calls)
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    for (const { status, errorCode, headers } of answers) {
      if (status === 200) continue
      assert.equal(errorCode, 'circuit_open')
      // A caller that came back at once would be refused again.
      assert.equal(headers.get('retry-after-ms'), String(RESET_MS))
    }
    assert.equal(stateOf(gateway), 'closed')
  })

  it('is not opened again by earlier failures', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 4 })
    upstream.script = fails
    for (let i = 0; i < 4; i++) await exchange(gateway)
    await halfOpen(gateway)
    upstream.script = (res) => chatAnswer(res)
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'closed')
    upstream.script = fails
    for (let i = 0; i < 3; i++) await exchange(gateway)
    assert.equal(stateOf(gateway), 'closed', 'three of three calls, below the minimum')
  })

  it('is opened again when the probe fails, for the whole time', async (t) => {
    const { upstream, gateway } = await openCircuit(t)
    await halfOpen(gateway)
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'open')
    assert.equal((await exchange(gateway)).errorCode, 'circuit_open')
    assert.equal(upstream.requests.length, 2)
    await halfOpen(gateway)
    upstream.script = (res) => chatAnswer(res)
    assert.equal((await exchange(gateway)).status, 200)
    assert.equal(stateOf(gateway), 'closed')
  })

  it('is opened again when the caller leaves during the probe, and is probed once more', async (t) => {
    const { upstream, gateway } = await openCircuit(t)
    await halfOpen(gateway)
    upstream.script = () => {}
    const leaving = new AbortController()
    const left = gateway.post(pathOf(OPENAI), bodyOf(OPENAI), { signal: leaving.signal })
    await until(() => upstream.requests.length === 2)
    leaving.abort()
    await assert.rejects(left)
    await until(() => stateOf(gateway) === 'open', 'open again')
    await halfOpen(gateway)
    upstream.script = (res) => chatAnswer(res)
    assert.equal((await exchange(gateway)).status, 200)
    assert.equal(stateOf(gateway), 'closed')
  })

  it('ignores a 429 of the probe, and is not stuck half-open', async (t) => {
    const { upstream, gateway } = await openCircuit(t)
    await halfOpen(gateway)
    upstream.script = (res) => answerJson(res, 429, {})
    assert.equal((await exchange(gateway)).errorCode, 'upstream_rate_limited')
    assert.equal(stateOf(gateway), 'open')
    await halfOpen(gateway)
  })

  it('ignores results of calls that began before it opened', async (t) => {
    const { upstream, gateway } = await closedCircuit(t, { minimumCalls: 1 })
    const early = Promise.withResolvers<boolean>()
    upstream.script = async (res, request, index) => {
      if (index < 2) await early.promise
      if (index === 0) chatAnswer(res)
      else fails(res, request, index)
    }
    const late = [exchange(gateway), exchange(gateway)]
    await until(() => upstream.requests.length === 2)
    await exchange(gateway)
    assert.equal(stateOf(gateway), 'open')
    await halfOpen(gateway)
    early.resolve(true)
    await Promise.all(late)
    // The late success has not closed it, and the late failure has not opened it.
    assert.equal(stateOf(gateway), 'half_open')
    upstream.script = (res) => chatAnswer(res)
    assert.equal((await exchange(gateway)).status, 200)
    assert.equal(stateOf(gateway), 'closed')
  })

  it('closes at the first output of a streamed probe, and counts a failure after that', async (t) => {
    const { upstream, gateway } = await openCircuit(t)
    await halfOpen(gateway)
    const breakOff = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      await stream(res, chatEvents(['Hello']).slice(0, 2), { end: false })
      await breakOff.promise
      res.socket?.resetAndDestroy()
    }
    const probe = exchange(gateway, OPENAI_STREAM)
    await until(() => stateOf(gateway) === 'closed')
    breakOff.resolve()
    assert.equal((await probe).broken, true)
    assert.equal(stateOf(gateway), 'open')
  })
})
