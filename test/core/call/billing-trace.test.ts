import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  amountOf,
  type CallLogEntry,
  type CallRequest,
  type ChargeItem,
  heldInput,
  heldOutput,
  itemOf,
  withLateCharge,
} from '../../../lib/core/call/index.ts'

const PER_MILLION = [
  'input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'audio_input',
  'output',
  'audio_output',
] as const
const PER_ONE = [
  'request',
  'image',
  'second',
  'search_unit',
  'web_search',
  'minute',
  'own',
  'bounded',
] as const

const item = (unit: ChargeItem['unit'], quantity: number, price: bigint): ChargeItem => ({
  unit,
  quantity,
  price,
})

describe('the cost of a call', () => {
  it('is the price of a million tokens, and of one of anything else', () => {
    for (const unit of PER_MILLION) assert.equal(amountOf([item(unit, 2_000_000, 3n)]), 6n, unit)
    for (const unit of PER_ONE) assert.equal(amountOf([item(unit, 2, 3n)]), 6n, unit)
    assert.equal(amountOf([]), 0n)
  })

  it('is rounded once, half up', () => {
    const half = item('input', 1, 500_000n)
    const rows: [items: ChargeItem[], amount: bigint][] = [
      [[half], 1n],
      [[item('input', 1, 499_999n)], 0n],
      [[half, half], 1n],
      [[half, half, half], 2n],
      [[item('second', 2.5, 3n)], 8n],
      [[item('second', 2.4, 3n)], 7n],
      [[item('minute', 0.0000004, 1n)], 0n],
      [[item('request', 1, 7n), item('output', 3, 1_500_000n)], 12n],
    ]
    for (const [items, amount] of rows) assert.equal(amountOf(items), amount)
  })

  it('is exact for any size, and reduced by the part that the account cannot pay', () => {
    const large = 10n ** 15n + 1n
    assert.equal(amountOf([item('request', 3, large)]), 3n * large)
    assert.equal(amountOf([item('input', 3_000_000, large), item('request', 1, 1n)]), 3n * large + 1n)
    assert.equal(amountOf([item('request', 1, 10n), item('bounded', 1, -7n)]), 3n)
    assert.equal(amountOf([item('input', 1, 500_000n), item('bounded', 1, 0n)]), 1n)
    assert.equal(
      amountOf([item('request', 1, 10n), item('bounded', 1, -7n), item('output', 1, 500_000n)]),
      4n,
    )
  })

  it('is the same as in whole numbers, for any terms', () => {
    const unit = fc.constantFrom(...PER_MILLION, ...PER_ONE)
    const price = fc.oneof(fc.bigInt(0n, 10n ** 10n), fc.bigInt(0n, 10n ** 20n))
    const term = fc.tuple(unit, fc.integer({ min: 0, max: 2_000_000 }), price)
    fc.assert(
      fc.property(fc.array(term, { maxLength: 5 }), (terms) => {
        let millionths = 0n
        for (const [unit, quantity, price] of terms)
          millionths += BigInt(quantity) * price * (PER_MILLION.includes(unit as 'input') ? 1n : 1_000_000n)
        const amount = amountOf(terms.map(([unit, quantity, price]) => item(unit, quantity, price)))
        assert.equal(amount, (millionths + 500_000n) / 1_000_000n)
      }),
      { numRuns: 120 },
    )
  })

  it('lists its terms with their prices as they are written', () => {
    for (const unit of ['input', 'own', 'bounded'] as const)
      for (let i = 0; i < 2; i++)
        assert.deepEqual(itemOf(item(unit, 5, 150_000_000n)), { unit, quantity: 5, price: '0.15' })
    assert.equal(itemOf(item('bounded', 1, -7n)).price, '-0.000000007')
  })
})

describe('the hold for a call', () => {
  const request = (priceUnit: string, members: object = {}) =>
    ({
      operation: { priceUnit },
      answers: 1,
      units: 3,
      maxOutputTokens: undefined,
      model: {},
      ...members,
    }) as unknown as CallRequest

  it('is a quarter more than the input is estimated at', () => {
    const held = [0, 1, 4, 5, 100].map((estimatedInputTokens) => heldInput({ estimatedInputTokens }))
    assert.deepEqual(held, [0, 2, 5, 7, 125])
  })

  it('includes the largest output that the request, or else the model, allows', () => {
    const all = { maxOutputTokens: 10, model: { maxOutputTokens: 20, contextWindow: 30 } }
    const rows: [request: CallRequest, tokens: number][] = [
      [request('tokens', all), 10],
      [request('tokens', { ...all, answers: 4 }), 40],
      [request('tokens', { ...all, maxOutputTokens: undefined }), 20],
      [request('tokens', { model: { contextWindow: 30 } }), 30],
      [request('tokens', { answers: 2 }), 65_536],
      [request('images', all), 60],
      [request('images'), 3 * 6240],
      [request('input', all), 0],
      [request('searches', all), 0],
      [request('seconds', all), 0],
      [request('none', all), 0],
    ]
    for (const [asked, tokens] of rows) assert.equal(heldOutput(asked), tokens)
  })
})

describe('a call that is charged long after its answer', () => {
  const entry = { id: 'req_1', status: 200, usage: null, billing: null } as unknown as CallLogEntry
  const charge = {
    reserved: 2_000_000_000n,
    amount: 1_500_000_000n,
    items: [item('second', 3, 500_000_000n)],
    seconds: 3,
    tokens: 40,
    source: 'measured',
  } as const

  it('has its usage and its charge in its entry', () => {
    assert.deepEqual(withLateCharge(entry, charge), {
      ...entry,
      usage: {
        input_tokens: 0,
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 40,
        seconds: 3,
        source: 'measured',
      },
      billing: {
        currency: 'USD',
        reserved: '2',
        charged: '1.5',
        required: null,
        available: null,
        items: [{ unit: 'second', quantity: 3, price: '0.5' }],
      },
    })
    assert.equal(entry.usage, null)
  })

  it('has what it cost the operator, if that is known', () => {
    assert.equal(withLateCharge(entry, { ...charge, cost: 250_000_000n }).billing?.cost, '0.25')
    assert.equal(withLateCharge(entry, { ...charge, cost: 0n }).billing?.cost, '0')
  })
})
