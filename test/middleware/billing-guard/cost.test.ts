import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Usage } from '../../../lib/core/call/index.ts'
import {
  FREE,
  formatAmount,
  type Price,
  parseAmount,
  type UnitPrices,
} from '../../../lib/core/catalog/index.ts'
import { costOf } from '../../../lib/middleware/billing-guard/cost.ts'

function priced(prices: Partial<Record<keyof UnitPrices, string>>): Price {
  const given = Object.entries(prices).map(([unit, text]) => [unit, parseAmount(text)])
  return { ...FREE, ...Object.fromEntries(given) }
}

function used(usage: Partial<Usage>): Usage {
  return {
    inputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    source: 'measured',
    ...usage,
  }
}

function cost(usage: Partial<Usage>, prices: Partial<Record<keyof UnitPrices, string>>): string {
  return formatAmount(costOf(used(usage), priced(prices)).amount)
}

describe('the cost of a call', () => {
  it('is its tokens at the price per million', () => {
    const price = { inputPerMillion: '0.15', outputPerMillion: '0.60' }
    assert.equal(cost({ inputTokens: 40, outputTokens: 11 }, price), '0.0000126')
  })

  it('counts cached and cache-writing input at prices of their own, and not as plain input too', () => {
    const price = { inputPerMillion: '10', cachedInputPerMillion: '1', cacheWritePerMillion: '12.5' }
    const usage = { inputTokens: 1000, cachedInputTokens: 600, cacheWriteTokens: 300 }
    assert.equal(cost(usage, price), formatAmount(parseAmount('0.001') + 600_000n + 3_750_000n))
  })

  it('counts requests, images and parts of seconds', () => {
    const price = { perRequest: '0.01', perImage: '0.04', perSecond: '0.1' }
    assert.equal(cost({ images: 2, seconds: 2.5 }, price), '0.34')
  })

  it('counts nothing that was not used, whatever it would cost', () => {
    const price = {
      inputPerMillion: '1',
      outputPerMillion: '1',
      cachedInputPerMillion: '1',
      cacheWritePerMillion: '1',
      perImage: '1',
      perSecond: '1',
      perSearchUnit: '1',
      perWebSearch: '1',
      perMinute: '1',
    }
    assert.deepEqual(costOf(used({}), priced(price)), { amount: 0n, items: [] })
    const pieces = { images: 1, seconds: 1, searchUnits: 1 }
    assert.deepEqual(
      costOf(used(pieces), priced(price)).items.map(({ unit, quantity }) => [unit, quantity]),
      [
        ['image', 1],
        ['second', 1],
        ['search_unit', 1],
      ],
    )
    assert.deepEqual(
      costOf(used({ ...pieces, inputTokens: 1, outputTokens: 1 }), priced(price)).items.map(
        ({ unit }) => unit,
      ),
      ['input', 'output'],
      'what is paid by its tokens is paid once',
    )
    const least = { ...priced(price), inputPerMillion: 1n, outputPerMillion: 1n }
    assert.deepEqual(
      costOf(used({ ...pieces, inputTokens: 1, outputTokens: 1 }), least).items.map(({ unit }) => unit),
      ['input', 'output'],
      'however little that is',
    )
    const free = priced({ perImage: '1', perSecond: '1', perSearchUnit: '1' })
    assert.deepEqual(
      costOf(used({ ...pieces, inputTokens: 1, outputTokens: 1 }), free).items.map(({ unit }) => unit),
      ['image', 'second', 'search_unit'],
    )
    const cached = used({ inputTokens: 5, cachedInputTokens: 4, cacheWriteTokens: 2 })
    assert.deepEqual(
      costOf(cached, priced(price)).items.map(({ unit, quantity }) => [unit, quantity]),
      [
        ['cached_input', 4],
        ['cache_write', 2],
      ],
      'plain input is never less than nothing',
    )
  })

  it('is rounded half up to the nano-unit once, and not term by term', () => {
    const halfANano = { inputPerMillion: '0.0005', outputPerMillion: '0.0005' }
    assert.equal(cost({ inputTokens: 1 }, halfANano), '0.000000001')
    assert.equal(cost({ inputTokens: 1, outputTokens: 1 }, halfANano), '0.000000001')
    assert.equal(cost({ inputTokens: 1 }, { inputPerMillion: '0.000499999' }), '0')
  })

  it('is nothing where an upstream says that more was cached than came in, and never less', () => {
    assert.equal(cost({ inputTokens: 10, cachedInputTokens: 30 }, { inputPerMillion: '5' }), '0')
  })

  it('is at the prices of the highest tier that its input is above', () => {
    const tier = (aboveInputTokens: number, price: string) => ({
      ...priced({ outputPerMillion: price }),
      aboveInputTokens,
    })
    const price = { ...priced({ outputPerMillion: '1' }), tiers: [tier(200, '3'), tier(100, '2')] }
    const outputAt = (inputTokens: number) =>
      formatAmount(costOf(used({ inputTokens, outputTokens: 1_000_000 }), price).amount)
    assert.deepEqual([0, 100, 101, 200, 201].map(outputAt), ['1', '1', '2', '2', '3'])
  })

  it('names the terms that it is made of, and leaves out those that cost nothing', () => {
    const { items } = costOf(
      used({ inputTokens: 40, outputTokens: 11 }),
      priced({ outputPerMillion: '0.6', perRequest: '0.01' }),
    )
    assert.deepEqual(items, [
      { unit: 'output', quantity: 11, price: 600_000_000n },
      { unit: 'request', quantity: 1, price: 10_000_000n },
    ])
  })

  it('is each part of the usage at its own price, and each token once', () => {
    const amount = fc.integer({ min: 0, max: 1000 })
    const parts = fc.tuple(amount, amount, amount, amount, amount, amount, amount, amount, amount)
    fc.assert(
      fc.property(parts, ([plain, audio, cached, written, hour, text, spoken, searches, minutes]) => {
        const usage = used({
          inputTokens: plain + audio + cached + written + hour,
          audioInputTokens: audio,
          cachedInputTokens: cached,
          cacheWriteTokens: written + hour,
          cacheWrite1hTokens: hour,
          outputTokens: text + spoken,
          audioOutputTokens: spoken,
          webSearches: searches,
          minutes,
        })
        const terms = [
          ['input', plain, 'inputPerMillion', '1'],
          ['audio_input', audio, 'audioInputPerMillion', '2'],
          ['cached_input', cached, 'cachedInputPerMillion', '3'],
          ['cache_write', written, 'cacheWritePerMillion', '5'],
          ['cache_write_1h', hour, 'cacheWrite1hPerMillion', '7'],
          ['output', text, 'outputPerMillion', '11'],
          ['audio_output', spoken, 'audioOutputPerMillion', '13'],
          ['request', 1, 'perRequest', '17'],
          ['web_search', searches, 'perWebSearch', '19'],
          ['minute', minutes, 'perMinute', '23'],
        ] as const
        const prices = priced(Object.fromEntries(terms.map(([, , unit, price]) => [unit, price])))
        assert.deepEqual(
          costOf(usage, prices).items.map(({ unit, quantity, price }) => [
            unit,
            quantity,
            formatAmount(price),
          ]),
          terms
            .filter(([, quantity]) => quantity > 0)
            .map(([unit, quantity, , price]) => [unit, quantity, price]),
        )
      }),
    )
  })

  it('equals exact arithmetic, whatever the figures', () => {
    const tokens = fc.integer({ min: 0, max: 2_000_000_000 })
    const nanos = fc.bigInt({ min: 0n, max: 10n ** 15n })
    fc.assert(
      fc.property(tokens, tokens, nanos, nanos, (input, output, inputPerMillion, outputPerMillion) => {
        const { amount } = costOf(used({ inputTokens: input, outputTokens: output }), {
          ...FREE,
          inputPerMillion,
          outputPerMillion,
        })
        const millionths = BigInt(input) * inputPerMillion + BigInt(output) * outputPerMillion
        const off = amount * 1_000_000n - millionths
        assert.ok(off <= 500_000n && off > -500_000n)
      }),
    )
  })
})
