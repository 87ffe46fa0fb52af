import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { CallRequest, Principal } from '../../../lib/core/call/index.ts'
import { type Catalog, formatAmount, type Model } from '../../../lib/core/catalog/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { WorstCase } from '../../../lib/middleware/billing-guard/cost.ts'
import { configWith, LINE } from '../../core/config/config.ts'
import { loadConfig } from '../../support/any-config.ts'

const PRICE = { inputPerMillion: '0.15', outputPerMillion: '0.60' }

function catalogOf(model: object, ...lines: object[]): Catalog {
  const own = lines.length > 0 ? lines : [{}]
  return loadConfig(
    configWith({
      models: [{ id: 'chat', kind: 'chat', ...model }],
      lines: own.map((line, i) => ({ ...LINE, id: `line-${i}`, ...line })),
    }),
  ).catalog
}

/** The amount held for a chat with 41 tokens of input and at most 256 of output, unless `request` overrides them. */
function held(catalog: Catalog, request: Partial<CallRequest> = {}, principal?: Partial<Principal>): string {
  const operation = OPERATIONS.find(({ name }) => name === 'chat.completions')
  assert.ok(operation, 'the operation is named so')
  const asked = {
    operation,
    model: catalog.models.get('chat') as Model,
    fallbacks: [],
    estimatedInputTokens: 41,
    maxOutputTokens: 256,
    answers: 1,
    webSearches: 0,
    ...request,
  } as CallRequest
  return formatAmount(new WorstCase().of(catalog, asked, (principal as Principal | undefined) ?? null))
}

describe('the hold for a call', () => {
  it('is five quarters of its estimated input and all the output it asked for', () => {
    assert.equal(held(catalogOf({ price: PRICE })), '0.000161288')
  })

  it('counts the output of every answer asked for', () => {
    assert.equal(held(catalogOf({ price: { outputPerMillion: '1' } }), { answers: 3 }), '0.000768')
  })

  it("is bounded by the model's own most output where the request says nothing, else by its window", () => {
    const price = { outputPerMillion: '1' }
    const unasked = { maxOutputTokens: undefined }
    assert.equal(held(catalogOf({ price, maxOutputTokens: 1000, contextWindow: 9000 }), unasked), '0.001')
    assert.equal(held(catalogOf({ price, contextWindow: 9000 }), unasked), '0.009')
  })

  it('is never nothing for a model with a price and without bounds', () => {
    const held32k = held(catalogOf({ price: { outputPerMillion: '1' } }), { maxOutputTokens: undefined })
    assert.equal(held32k, '0.032768')
  })

  it('is at the dearest price of the lines that may serve it', () => {
    const lines = [{ price: { inputPerMillion: '10' } }, { price: { outputPerMillion: '4' } }]
    assert.equal(held(catalogOf({ price: PRICE }, ...lines)), formatAmount(512_500n + 1_024_000n))
  })

  it('counts only the lines of the regions that may serve the account', () => {
    const lines = [{ region: 'us', price: { outputPerMillion: '100' } }, { region: 'eu' }, {}]
    assert.equal(held(catalogOf({ price: PRICE }, ...lines), {}, { lineRegions: ['eu'] }), '0.000161288')
  })

  it('takes all input for written to the cache on a line that charges more for that', () => {
    const line = { protocol: 'anthropic', models: { chat: 'claude' } }
    const price = { inputPerMillion: '3', cacheWritePerMillion: '3.75' }
    assert.equal(held(catalogOf({ price }, line)), '0.000192188')
  })

  const body = (text: string) => ({ body: { raw: Buffer.from(text), json: {} } })

  it('is at the prices of every tier that its input can reach, dearer or cheaper', () => {
    const tiers = [
      { aboveInputTokens: 100, outputPerMillion: '2' },
      { aboveInputTokens: 200, outputPerMillion: '0.5' },
    ]
    const price = { outputPerMillion: '1', tiers }
    const ask = (estimatedInputTokens: number) =>
      held(catalogOf({ price }), { estimatedInputTokens, maxOutputTokens: 1000 })
    assert.deepEqual([ask(80), ask(81), ask(500)], ['0.001', '0.002', '0.002'])
    const apart = catalogOf(
      { price: { outputPerMillion: '1' } },
      { price: { tiers: [{ aboveInputTokens: 200, outputPerMillion: '5' }] } },
      { price: { tiers: [{ aboveInputTokens: 101, outputPerMillion: '2' }] } },
      { price: { tiers: [{ aboveInputTokens: 102, outputPerMillion: '3' }] } },
    )
    const across = (estimatedInputTokens: number) =>
      held(apart, { estimatedInputTokens, maxOutputTokens: 1000 })
    assert.deepEqual([80, 81, 82, 160, 161].map(across), ['0.001', '0.002', '0.003', '0.003', '0.005'])
    const onOneLine = catalogOf({ price: { outputPerMillion: '1' } }, {}, { price: { tiers } })
    assert.equal(held(onOneLine, { estimatedInputTokens: 81, maxOutputTokens: 1000 }), '0.002')
  })

  it('is at the prices of audio where the request can have some', () => {
    const price = { ...PRICE, audioInputPerMillion: '40', audioOutputPerMillion: '80' }
    const ask = (text: string) => held(catalogOf({ price }), body(text))
    assert.equal(ask('{"messages":[]}'), '0.000161288')
    assert.equal(ask('{"type":"input_audio"}'), formatAmount(2_050_000n + 153_600n))
    assert.equal(ask('{"modalities":["text","audio"]}'), formatAmount(2_050_000n + 20_480_000n))
    assert.equal(ask('{"modalities":["\\u0061udio"]}'), ask('{"modalities":["audio"]}'), 'in escapes too')
    assert.equal(ask(''), ask('{"modalities":["audio"]}'), 'a form')
  })

  it('is at the price of writing for an hour where the request asks for that', () => {
    const line = { protocol: 'anthropic', models: { chat: 'claude' } }
    const price = { inputPerMillion: '3', cacheWritePerMillion: '3.75', cacheWrite1hPerMillion: '6' }
    const ask = (text: string) => held(catalogOf({ price }, line), body(text))
    assert.equal(ask('{"cache_control":{"type":"ephemeral"}}'), '0.000192188')
    assert.equal(ask('{"cache_control":{"type":"ephemeral","ttl":"1h"}}'), '0.0003075')
  })

  it('is at each dear price that the request can come to, and never at a cheaper one', () => {
    const cheap = { inputPerMillion: '4', outputPerMillion: '4', cacheWritePerMillion: '4' }
    const all = body('{"ttl":"1h","modalities":["audio"]}')
    const ask = (price: object, request: object = all) =>
      held(catalogOf({ price: { ...cheap, ...price } }), {
        ...{ estimatedInputTokens: 800, maxOutputTokens: 1000 },
        ...request,
      })
    const none = '0.008'
    const [oneHour, audioIn, audioOut] = [
      { cacheWrite1hPerMillion: '8' },
      { audioInputPerMillion: '8' },
      { audioOutputPerMillion: '8' },
    ]
    for (const price of [oneHour, audioIn, audioOut]) {
      assert.equal(ask(price), '0.012')
      assert.equal(ask(price, body('{}')), none)
    }
    const cheaper = {
      ...{ cacheWrite1hPerMillion: '1', audioInputPerMillion: '2', audioOutputPerMillion: '3' },
    }
    assert.equal(ask({ ...cheaper, ...oneHour }), '0.012')
    assert.equal(ask({ ...cheaper, ...audioIn }), '0.012')
    assert.equal(ask({ ...cheaper, ...audioOut }), '0.012')
    // Lines of each protocol may write into a cache, and charge it apart, without being asked.
    for (const protocol of ['openai', 'anthropic'])
      assert.equal(
        held(catalogOf({ price: { ...cheap, cacheWritePerMillion: '8' } }, { protocol }), {
          ...{ estimatedInputTokens: 800, maxOutputTokens: 1000 },
          ...body('{}'),
        }),
        '0.012',
        protocol,
      )
  })

  it('is exact, however large the figures are', () => {
    const amount = fc.integer({ min: 0, max: 3_000_000 })
    const nanos = fc.bigInt({ min: 0n, max: 10n ** 12n })
    fc.assert(
      fc.property(amount, amount, nanos, nanos, nanos, (input, output, ofInput, ofOutput, perRequest) => {
        const price = {
          inputPerMillion: formatAmount(ofInput),
          outputPerMillion: formatAmount(ofOutput),
          perRequest: formatAmount(perRequest),
        }
        const quarters =
          5n * BigInt(input) * ofInput + 4n * BigInt(output) * ofOutput + 4_000_000n * perRequest
        const most = { estimatedInputTokens: input, maxOutputTokens: output }
        assert.equal(held(catalogOf({ price }), most), formatAmount((quarters + 2_000_000n) / 4_000_000n))
      }),
      { numRuns: 30 },
    )
  })

  it('counts the price of the request itself', () => {
    assert.equal(held(catalogOf({ price: { perRequest: '0.01' } })), '0.01')
  })

  it('counts each web search that the request may come to', () => {
    const catalog = catalogOf(
      { price: { ...PRICE, perWebSearch: '0.01' } },
      {},
      { price: { perWebSearch: '0.02' } },
    )
    assert.equal(held(catalog, { webSearches: 3 }), '0.060161288')
    assert.equal(held(catalog, { webSearches: 1 }), '0.020161288')
    assert.equal(held(catalog), '0.000161288')
  })

  it('is nothing for a free model', () => {
    assert.equal(held(catalogOf({})), '0')
  })

  const of = (name: string, price: object, request: Partial<CallRequest>, model: object = {}) => {
    const operation = OPERATIONS.find((one) => one.name === name) ?? {
      ...(OPERATIONS[0] as (typeof OPERATIONS)[number]),
      priceUnit: 'seconds' as const,
    }
    return held(catalogOf({ price, ...model }), { operation, estimatedInputTokens: 0, ...request })
  }
  const EVERY = {
    outputPerMillion: '1',
    perImage: '0.005',
    perSearchUnit: '0.002',
    perSecond: '0.1',
  }

  it('is as many images as are asked for, at their price or at that of their tokens', () => {
    const images = (price: object, model: object = {}) => of('images.generations', price, { units: 3 }, model)
    assert.equal(images({ perImage: '0.04' }), '0.12')
    assert.equal(images({ outputPerMillion: '1' }), '0.01872')
    assert.equal(images({ outputPerMillion: '1' }, { maxOutputTokens: 1000 }), '0.003')
    assert.equal(images(EVERY, { maxOutputTokens: 1000 }), '0.015')
    assert.equal(images(EVERY, { maxOutputTokens: 9000 }), '0.027')
    assert.equal(images({}), '0')
  })

  it('is the searches, or the seconds, that it comes to', () => {
    assert.equal(of('rerank', EVERY, { units: 3 }), '0.006')
    assert.equal(of('a video', EVERY, { units: 3 }), '0.3')
    assert.equal(of('rerank', {}, { units: 3 }), '0')
    assert.equal(of('a video', {}, { units: 3 }), '0')
  })

  it('is its input alone where nothing is written, or nothing at all is charged', () => {
    assert.equal(
      of('embeddings', { ...EVERY, inputPerMillion: '1' }, { estimatedInputTokens: 40 }),
      '0.00005',
    )
    assert.equal(of('messages.count_tokens', EVERY, {}), '0')
  })

  it('is rounded half up to the nano-unit', () => {
    const input = (tokens: number) =>
      of('embeddings', { inputPerMillion: '0.0004' }, { estimatedInputTokens: tokens })
    assert.equal(input(1), '0.000000001', 'half a nano-unit')
    const less = of('embeddings', { inputPerMillion: '0.000399999' }, { estimatedInputTokens: 1 })
    assert.equal(less, '0')
  })

  it('is the dearest of each price, wherever it stands among the lines', () => {
    const dear = { price: { perRequest: '0.02' } }
    for (const lines of [
      [dear, {}],
      [{}, dear],
    ])
      assert.equal(held(catalogOf({ price: { perRequest: '0.01' } }, ...lines)), '0.02')
  })
})
