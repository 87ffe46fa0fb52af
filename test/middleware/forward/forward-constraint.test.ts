import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'

/** Three lines of a rule: here first, then those of others and of another region. */
async function gatewayWith(t: TestContext) {
  const upstream = await byteUpstream(t, (req, res) => {
    req.resume().on('end', () => res.end(String(req.headers.authorization)))
  })
  const { url } = upstream
  const gateway = await forwardGateway(t, {
    lines: [
      { url, region: 'us' },
      { url, provider: 'other', region: 'us' },
      { url, provider: 'third', region: 'eu' },
    ],
    rules: [
      { path: '/v1/audio/speech', lines: ['line-0', 'line-1', 'line-2'], price: { perRequest: '0.01' } },
    ],
  })
  const ask = (constraint?: string) =>
    gateway.ask('/v1/audio/speech', {
      method: 'POST',
      body: 'hello',
      headers: constraint === undefined ? {} : { 'x-gateway-provider': constraint },
    })
  return { gateway, upstream, ask }
}

const SERVED = [
  [undefined, 0],
  ['{}', 0],
  ['{"only":["other"]}', 1],
  ['{"only":["third","other"]}', 1],
  ['{"order":["third"]}', 2],
  ['{"ignore":["p","other"]}', 2],
  ['{"region":"eu"}', 2],
  ['{"region":"us","ignore":["p"]}', 1],
  ['{"max_price":{"request":0.01}}', 0],
  ['{"sort":"price","order":["other"]}', 1],
] as const

describe('a provider constraint of a call that is passed on', () => {
  for (const [constraint, line] of SERVED)
    it(`chooses the line: ${constraint}`, async (t) => {
      const { gateway, ask } = await gatewayWith(t)
      const response = await ask(constraint)
      assert.equal(response.status, 200)
      assert.equal(await response.text(), `Bearer upstream-key-${line}`)
      assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
    })

  for (const [constraint, code, status] of [
    ['{"only":["nobody"]}', 'no_candidate', 503],
    ['{"region":"mars"}', 'no_candidate', 503],
    ['{"max_price":{"request":0.009}}', 'no_candidate', 503],
    ['{"only"', 'invalid_request', 400],
    ['{"only":"other"}', 'invalid_request', 400],
    ['[]', 'invalid_request', 400],
  ] as const)
    it(`that no line meets, or that is none, is refused: ${constraint}`, async (t) => {
      const { gateway, upstream, ask } = await gatewayWith(t)
      const response = await ask(constraint)
      assert.equal(response.status, status)
      assert.equal((await envelopeOf(response)).error.code, code)
      assert.equal(upstream.requests.length, 0)
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
      if (code !== 'no_candidate') return
      const { routing } = await gateway.entry(response.headers.get('x-request-id'))
      const reason = constraint.includes('max_price') ? 'price_ceiling' : 'provider_constraint'
      assert.deepEqual(new Set(routing?.eliminated.map((one) => one.reason)), new Set([reason]))
    })
})
