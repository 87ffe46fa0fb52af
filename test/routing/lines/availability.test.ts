import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { joinAvailability } from '../../../lib/middleware/route/index.ts'
import { clockOf } from '../../support/clock.ts'
import { gatewayFor } from '../../support/exchange.ts'
import { chatBody } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  closedPort,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const CALLERS = ['acme', 'globex'] as const

interface CallOptions {
  readonly model?: string
  readonly by?: (typeof CALLERS)[number]
  readonly stream?: boolean
}

const serves: UpstreamScript = (res) => chatAnswer(res)
const answers =
  (status: number): UpstreamScript =>
  (res) =>
    answerJson(res, status, { error: { message: 'no' } })
const breaksOff: UpstreamScript = async (res) => {
  await stream(res, chatEvents(['Hello']).slice(0, 2), { end: false })
  res.socket?.resetAndDestroy()
}

/** A line with two models, two accounts, and a circuit that opens and half-opens all the time. */
async function scene(t: TestContext, url?: string) {
  const upstream = await startUpstream(serves)
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, {
    lines: [
      {
        url: url ?? upstream.url,
        models: { chat: 'chat', other: 'other' },
        circuit: { resetMs: 5 },
        timeouts: { firstByteMs: 40 },
      },
    ],
    config: {
      accounts: CALLERS.map((id) => ({ id })),
      keys: CALLERS.map((account) => ({ id: `key_${account}`, account, secret: `sk-${account}` })),
      models: ['chat', 'other'].map((id) => ({ id, kind: 'chat' })),
    },
  })
  const [line] = gateway.config.catalog.lines
  assert.ok(line)
  return {
    upstream,
    availability: () => gateway.lines.reading(line).availability,
    circuit: () => gateway.lines.reading(line).circuit,
    switchOff: () => gateway.lines.applySwitches(new Map([[line.id, false]])),
    async call(times: number, { model = 'chat', by = 'acme', ...body }: CallOptions = {}) {
      for (let i = 0; i < times; i++) {
        const headers = { authorization: `Bearer sk-${by}` }
        const request = gateway.post('/v1/chat/completions', chatBody({ model, ...body }), { headers })
        await request.then((response) => response.text()).catch(() => {})
        await new Promise((resolve) => setTimeout(resolve, 8))
      }
    },
  }
}

describe('the availability of a line', () => {
  const faults: readonly (readonly [name: string, script: UpstreamScript, body?: CallOptions])[] = [
    ['hangs', () => {}],
    ['answers 500', answers(500)],
    ['answers 503', answers(503)],
    ['refuses the key', answers(401)],
    ['breaks off every stream', breaksOff, { stream: true }],
  ]
  for (const [name, script, body] of faults)
    it(`is "no" while it ${name}, in any state of its circuit, and "yes" after the next successful call`, async (t) => {
      const { upstream, availability, circuit, call } = await scene(t)
      assert.equal(availability(), 'unknown', 'before the first call')
      await call(2, body)
      assert.equal(availability(), 'up')
      upstream.script = script
      await call(1, body)
      assert.notEqual(availability(), 'down', 'after one failure')
      await call(7, body)
      assert.equal(availability(), 'down')
      const seen = new Set<string>()
      for (let i = 0; i < 10; i++) {
        await call(1, body)
        seen.add(circuit())
        assert.equal(availability(), 'down')
      }
      assert.ok(name.startsWith('breaks') || seen.has('half_open') || seen.has('open'), `${[...seen]}`)
      upstream.script = serves
      await call(4, { stream: false })
      assert.equal(availability(), 'up')
    })

  it('is "no" while connections are refused', async (t) => {
    const { availability, call } = await scene(t, `http://127.0.0.1:${await closedPort()}`)
    await call(8)
    assert.equal(availability(), 'down')
  })

  for (const [name, script] of [
    ['limits the gateway', answers(429)],
    ['refuses requests', answers(400)],
  ] as const)
    it(`is never "no" while it ${name}`, async (t) => {
      const { upstream, availability, call } = await scene(t)
      upstream.script = script
      await call(12)
      assert.equal(availability(), 'unknown')
    })

  it('is never "no" while every third call succeeds', async (t) => {
    const { upstream, availability, call } = await scene(t)
    let calls = 0
    upstream.script = (...args) => (calls++ % 3 === 2 ? serves : answers(500))(...args)
    for (let i = 0; i < 30; i++) {
      await call(1)
      assert.notEqual(availability(), 'down')
    }
  })

  it('is "no" only if all models in use fail, where a model is in use for two minutes', async (t) => {
    const clock = clockOf(t)
    const { upstream, availability, call } = await scene(t)
    upstream.script = (res, request, ...rest) =>
      (request.json.model === 'other' ? serves : answers(500))(res, request, ...rest)
    await call(1, { model: 'other' })
    await call(8)
    assert.equal(availability(), 'up')
    clock.pass(121_000)
    await call(1)
    assert.equal(availability(), 'down')
    await call(1, { model: 'other' })
    assert.equal(availability(), 'up')
    clock.pass(121_000)
    await until(() => availability() === 'unknown', 'a line that nobody uses')
  })

  it('is not determined by the failures of one account while another uses the line', async (t) => {
    const clock = clockOf(t)
    const { upstream, availability, call } = await scene(t)
    upstream.script = answers(500)
    await call(1, { by: 'globex' })
    await call(8)
    assert.equal(availability(), 'down', 'both have failed')
    upstream.script = serves
    await call(4, { by: 'globex' })
    upstream.script = answers(500)
    await call(12)
    assert.notEqual(availability(), 'down')
    clock.pass(121_000)
    await call(1)
    assert.equal(availability(), 'down', 'nobody else has used it since')
  })

  it('is not reported for a line that is switched off', async (t) => {
    const { upstream, availability, call, switchOff } = await scene(t)
    upstream.script = answers(500)
    await call(8)
    assert.equal(availability(), 'down')
    switchOff()
    assert.equal(availability(), 'unknown')
  })

  it('is "yes" if calls succeed in any of several processes', () => {
    assert.equal(joinAvailability(['unknown', 'down', 'up']), 'up')
    assert.equal(joinAvailability(['unknown', 'down']), 'down')
    assert.equal(joinAvailability(['unknown']), 'unknown')
    assert.equal(joinAvailability([]), 'unknown')
  })
})
