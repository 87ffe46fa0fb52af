import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { dataOf, readExchange } from '../../../support/exchange.ts'
import { startUpstream, stream, type UpstreamScript } from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'
import { billedGateway } from '../../billing-guard/billed-gateway.ts'

const IMAGE = Buffer.alloc(64 * 1024, 7).toString('base64')
const USAGE = {
  input_tokens: 10,
  output_tokens: 1256,
  total_tokens: 1266,
  input_tokens_details: { text_tokens: 10 },
}
const BODY = { model: 'chat', prompt: 'A river', stream: true, partial_images: 2 }
const event = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: IMAGE, size: '1024x1024', quality: 'medium', ...members })}\n\n`
const coarse = (index: number) => event('image_generation.partial_image', { partial_image_index: index })
const done = (members: object = { usage: USAGE }) => event('image_generation.completed', members)

describe('a stream of images', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  async function asked(t: TestContext, price: object, script: UpstreamScript, body: object = {}) {
    upstream.script = script
    const gateway = await billedGateway(t, {
      lines: [{ url: upstream.url, price }],
      model: { kind: 'image', maxOutputTokens: undefined, price: {} },
    })
    return { gateway, response: gateway.post('/v1/images/generations', { ...BODY, ...body }) }
  }
  const PRICES = [
    ['by the image', { perImage: '0.04' }, '0.04'],
    ['by tokens', { inputPerMillion: '5', outputPerMillion: '40' }, '0.05029'],
    ['by tokens where it has both prices', { perImage: '9', outputPerMillion: '40' }, '0.05024'],
  ] as const

  for (const [what, price, charged] of PRICES) {
    it(`reaches the caller as it comes, and is charged ${what}`, async (t) => {
      const goOn = Promise.withResolvers<void>()
      const { gateway, response } = await asked(t, price, async (res) => {
        await stream(res, [coarse(0)], { end: false })
        await goOn.promise
        res.end(coarse(1) + done())
      })
      const answer = await response
      assert.equal(answer.status, 200)
      assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
      goOn.resolve()
      const got = await readExchange(answer)
      assert.deepEqual(
        dataOf(got.text).map(({ type }) => type),
        ['image_generation.partial_image', 'image_generation.partial_image', 'image_generation.completed'],
      )
      const { usage, billing } = await gateway.entry(got.requestId)
      assert.deepEqual([usage?.images, usage?.source, billing?.charged], [1, 'measured', charged])
    })
  }

  it('counts each image that is done, and estimates what is not reported', async (t) => {
    const { gateway, response } = await asked(
      t,
      { outputPerMillion: '1' },
      (res) => stream(res, [done({}), done({})]),
      { n: 2 },
    )
    const got = await readExchange(await response)
    const { usage } = await gateway.entry(got.requestId)
    assert.deepEqual([usage?.images, usage?.output_tokens, usage?.source], [2, 2 * 1056, 'estimated'])
  })

  for (const [price, charged] of [
    [{ perImage: '0.04' }, '0.04'],
    [{ outputPerMillion: '1000' }, '1.156'],
  ] as const) {
    it(`costs a caller that leaves after a coarse form the image (${Object.keys(price)})`, async (t) => {
      const { gateway, response } = await asked(t, price, (res) => stream(res, [coarse(0)], { end: false }))
      const answer = await response
      const reader = answer.body?.getReader()
      let text = ''
      while (!text.includes('\n\n')) text += Buffer.from((await reader?.read())?.value ?? []).toString()
      await reader?.cancel()
      await until(() => gateway.openCalls.size === 0, 'the end of the call')
      const { usage, billing, outcome } = await gateway.entry(answer.headers.get('x-request-id'))
      assert.deepEqual(
        [outcome, usage?.images, usage?.source, billing?.charged],
        ['interrupted', 1, 'estimated', charged],
      )
    })
  }

  it('ends with an error event where its line fails, and costs what came', async (t) => {
    const failure = 'event: error\ndata: {"type":"error","error":{"code":"server_error","message":"x"}}\n\n'
    const { gateway, response } = await asked(t, { perImage: '0.04' }, (res) =>
      stream(res, [coarse(0), failure]),
    )
    const got = await readExchange(await response)
    assert.match(got.text, /"code":"upstream_error"/)
    const { billing, outcome } = await gateway.entry(got.requestId)
    assert.deepEqual([outcome, billing?.charged], ['interrupted', '0.04'])
  })

  it('is an error of its line, which another may serve, as long as no image has come', async (t) => {
    const { gateway, response } = await asked(t, { perImage: '0.04' }, (res) =>
      stream(res, ['event: error\ndata: {"type":"error","error":{"code":"server_error"}}\n\n']),
    )
    const got = await readExchange(await response)
    assert.equal(got.status, 502)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})
