import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { ANTHROPIC, exchange, gatewayFor, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'

const LINES = [
  { id: 'us-1', provider: 'alpha', region: 'us', price: { inputPerMillion: '3', outputPerMillion: '9' } },
  { id: 'eu-1', provider: 'beta', region: 'eu', price: { inputPerMillion: '1', outputPerMillion: '5' } },
  {
    id: 'eu-2',
    provider: 'alpha',
    region: 'eu',
    price: { inputPerMillion: '2', outputPerMillion: '3', perRequest: '0.5' },
  },
  { id: 'nowhere', provider: 'gamma', price: { inputPerMillion: '4', outputPerMillion: '9' } },
]

describe('the provider constraint', () => {
  let upstream: ScriptedUpstream
  const cleanUp = cleaningUp()
  before(async () => {
    // Every line fails, so that the trace shows all that would be tried, in order.
    upstream = await startUpstream((res) => answerJson(res, 500, {}))
    cleanUp.after(() => upstream.close())
  })

  /** One for each test: the retries of all would use up the budget of one. */
  const started = (t: TestContext) =>
    gatewayFor(t, {
      lines: LINES.map((line) => ({ url: upstream.url, ...line })),
      route: { maxAttempts: 4 },
    })

  const CASES: { given: object; tried: string[] }[] = [
    { given: {}, tried: ['us-1', 'eu-1', 'eu-2', 'nowhere'] },
    { given: { only: ['alpha'] }, tried: ['us-1', 'eu-2'] },
    { given: { only: ['eu-2', 'gamma'] }, tried: ['eu-2', 'nowhere'] },
    { given: { ignore: ['alpha'] }, tried: ['eu-1', 'nowhere'] },
    { given: { ignore: ['eu-1', 'us-1'] }, tried: ['eu-2', 'nowhere'] },
    { given: { only: ['alpha'], ignore: ['us-1'] }, tried: ['eu-2'] },
    { given: { only: [] }, tried: [] },
    { given: { order: ['gamma', 'eu-2'] }, tried: ['nowhere', 'eu-2', 'us-1', 'eu-1'] },
    { given: { order: ['alpha'] }, tried: ['us-1', 'eu-2', 'eu-1', 'nowhere'] },
    { given: { order: ['gamma', 'beta'], allow_fallbacks: false }, tried: ['nowhere', 'eu-1'] },
    { given: { allow_fallbacks: false }, tried: ['us-1'] },
    { given: { allow_fallbacks: true }, tried: ['us-1', 'eu-1', 'eu-2', 'nowhere'] },
    { given: { sort: 'price', ignore: ['eu-2'] }, tried: ['eu-1', 'us-1', 'nowhere'] },
    { given: { sort: 'price', allow_fallbacks: false }, tried: ['eu-1'] },
    { given: { region: 'eu' }, tried: ['eu-1', 'eu-2'] },
    { given: { region: ['us', 'eu'] }, tried: ['us-1', 'eu-1', 'eu-2'] },
    { given: { max_price: { prompt: 2 } }, tried: ['eu-1', 'eu-2'] },
    { given: { max_price: { prompt: '3', completion: '5' } }, tried: ['eu-1', 'eu-2'] },
    { given: { max_price: { request: 0.499999999 } }, tried: ['us-1', 'eu-1', 'nowhere'] },
    { given: { max_price: { request: '0.5', image: 0 } }, tried: ['us-1', 'eu-1', 'eu-2', 'nowhere'] },
  ]
  for (const { given, tried } of CASES) {
    for (const where of ['body', 'header'] as const) {
      it(`${JSON.stringify(given)} in the ${where}: ${tried.join(', ') || 'no line'}`, async (t) => {
        const gateway = await started(t)
        upstream.requests.length = 0
        const extra = where === 'body' ? { provider: given } : {}
        const headers = where === 'header' ? { 'x-gateway-provider': JSON.stringify(given) } : {}
        const got = await exchange(gateway, OPENAI, extra, { headers })
        const { routing } = await gateway.entry(got.requestId)
        assert.deepEqual(
          routing?.attempts.map(({ line }) => line),
          tried,
        )
        assert.equal(routing?.eliminated.length, LINES.length - tried.length, 'the trace says why')
        assert.equal(upstream.requests.length, tried.length)
        for (const { json, headers } of upstream.requests) {
          assert.equal('provider' in json, false)
          assert.equal('x-gateway-provider' in headers, false)
        }
        if (tried.length === 0) assert.equal(got.errorCode, 'no_candidate')
      })
    }
  }

  const REFUSED: { given: string; param: string }[] = [
    { given: '{"onyl":["a"]}', param: 'provider.onyl' },
    { given: '{"only":"alpha"}', param: 'provider.only' },
    { given: '{"only":[1]}', param: 'provider.only[0]' },
    { given: '{"sort":"speed"}', param: 'provider.sort' },
    { given: '{"allow_fallbacks":"no"}', param: 'provider.allow_fallbacks' },
    { given: '{"max_price":{"token":1}}', param: 'provider.max_price.token' },
    { given: '{"max_price":{"prompt":-1}}', param: 'provider.max_price.prompt' },
    { given: '{"region":7}', param: 'provider.region' },
    { given: '[]', param: 'provider' },
  ]
  for (const { given, param } of REFUSED) {
    it(`refuses ${given} in the body and in the header, naming the member`, async (t) => {
      const gateway = await started(t)
      upstream.requests.length = 0
      const inBody = await exchange(gateway, OPENAI, { provider: JSON.parse(given) })
      assert.equal(inBody.status, 400)
      assert.equal(inBody.errorCode, 'invalid_request')
      assert.equal(inBody.envelope().error.param, param)
      const inHeader = await exchange(gateway, OPENAI, {}, { headers: { 'x-gateway-provider': given } })
      assert.equal(inHeader.errorCode, 'invalid_request')
      assert.equal(inHeader.envelope().error.param, param.replace('provider', 'X-Gateway-Provider'))
      assert.equal(upstream.requests.length, 0)
    })
  }

  const SHUT: { what: string; status: number; code: string; reason: string; calls: number }[] = [
    { what: 'rests', status: 429, code: 'upstream_rate_limited', reason: 'resting', calls: 1 },
    { what: 'has an open circuit', status: 500, code: 'circuit_open', reason: 'circuit_open', calls: 10 },
  ]
  for (const { what, status, code, reason, calls } of SHUT) {
    it(`allow_fallbacks: false refuses a call whose first choice ${what}, with its wait`, async (t) => {
      const [ill, well] = await Promise.all([
        startUpstream((res) => {
          res.setHeader('retry-after', '20')
          answerJson(res, status, {})
        }),
        startUpstream(),
      ])
      t.after(() => Promise.all([ill.close(), well.close()]))
      const gateway = await gatewayFor(t, {
        lines: [
          { id: 'ill', provider: 'alpha', url: ill.url, price: { inputPerMillion: '5' } },
          { id: 'well', url: well.url, price: { inputPerMillion: '0' } },
          { id: 'third', url: well.url, price: { inputPerMillion: '9' } },
        ],
      })
      for (let i = 0; i < calls; i++) await exchange(gateway, OPENAI, { provider: { only: ['ill'] } })
      const before = ill.requests.length
      for (const given of [{}, { ignore: ['third'] }, { only: ['third', 'ill'] }]) {
        const provider = { ...given, allow_fallbacks: false }
        for (const mode of [OPENAI, OPENAI_STREAM]) {
          const got = await exchange(gateway, mode, { provider })
          assert.equal(got.errorCode, code)
          const wait = Number(got.headers.get('retry-after'))
          assert.ok(wait >= 1 && wait <= (status === 429 ? 20 : 60), `a wait of ${wait} s`)
          if (status === 429) assert.ok(wait > 15, 'the rest of the first choice')
          const { routing } = await gateway.entry(got.requestId)
          assert.equal(routing?.attempts.length, 0)
          assert.deepEqual(routing?.eliminated.map((one) => [one.line, one.reason]).sort(), [
            ['ill', reason],
            ['third', 'provider_constraint'],
            ['well', 'provider_constraint'],
          ])
        }
      }
      assert.equal(ill.requests.length, before)
      assert.equal(well.requests.length, 0, 'no line but the first choice')

      for (const given of [{}, { sort: 'price' }, { ignore: ['alpha'] }, { order: ['well'] }]) {
        const isStrict = Object.keys(given).length > 0
        const got = await exchange(gateway, OPENAI, { provider: { ...given, allow_fallbacks: !isStrict } })
        assert.equal(got.status, 200, 'another first choice, or fallbacks')
      }
      assert.equal(ill.requests.length, before)
    })
  }

  it('refuses a header that is not JSON', async (t) => {
    const gateway = await started(t)
    const got = await exchange(gateway, OPENAI, {}, { headers: { 'x-gateway-provider': 'only=alpha' } })
    assert.equal(got.errorCode, 'invalid_request')
    assert.equal(got.envelope().error.param, 'X-Gateway-Provider')
  })

  it('may be null', async (t) => {
    const gateway = await started(t)
    const got = await exchange(gateway, OPENAI, { provider: null })
    const { routing } = await gateway.entry(got.requestId)
    assert.equal(routing?.attempts.length, 4)
    assert.ok(upstream.requests.every(({ json }) => !('provider' in json)))
  })

  it('of an Anthropic-style call is read from the header, or from the body', async (t) => {
    const server = await startUpstream((res) => messageAnswer(res))
    t.after(() => server.close())
    const anthropic = await gatewayFor(t, {
      lines: ['a', 'b'].map((id) => ({ url: server.url, id, protocol: 'anthropic' as const })),
    })
    const init = { headers: { 'x-gateway-provider': '{"only":["b"]}' } }
    for (const got of [
      await exchange(anthropic, ANTHROPIC, {}, init),
      await exchange(anthropic, ANTHROPIC, { provider: { only: ['b'] } }),
    ]) {
      assert.equal(got.status, 200)
      const { routing } = await anthropic.entry(got.requestId)
      assert.equal(routing?.attempts[0]?.line, 'b')
      assert.ok(server.requests.every(({ json }) => !('provider' in json)))
    }
  })

  it('sorts by latency', async (t) => {
    const slow = await startUpstream((res) => void setTimeout(() => chatAnswer(res), 800))
    const fast = await startUpstream()
    t.after(() => Promise.all([slow.close(), fast.close()]))
    const gateway = await gatewayFor(t, { lines: [slow, fast].map(({ url }) => ({ url })) })
    for (const only of ['line-0', 'line-1']) await exchange(gateway, OPENAI, { provider: { only: [only] } })
    const got = await exchange(gateway, OPENAI, { provider: { sort: 'latency' } })
    const { routing } = await gateway.entry(got.requestId)
    assert.equal(routing?.attempts[0]?.line, 'line-1')
  })

  it('sorts by throughput', async (t) => {
    // The same number of tokens, over a longer and a shorter time.
    const slow = await startUpstream((res) => stream(res, chatEvents(['a', 'b', 'c', 'd']), { paceMs: 200 }))
    const fast = await startUpstream((res) => stream(res, chatEvents(['a', 'b', 'c', 'd']), { paceMs: 1 }))
    t.after(() => Promise.all([slow.close(), fast.close()]))
    const gateway = await gatewayFor(t, { lines: [slow, fast].map(({ url }) => ({ url })) })
    for (const only of ['line-0', 'line-1'])
      await exchange(gateway, OPENAI_STREAM, { provider: { only: [only] } })
    const got = await exchange(gateway, OPENAI_STREAM, { provider: { sort: 'throughput' } })
    const { routing } = await gateway.entry(got.requestId)
    assert.equal(routing?.attempts[0]?.line, 'line-1')
  })
})
