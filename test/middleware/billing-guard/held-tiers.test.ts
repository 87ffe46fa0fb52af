import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { CallRequest } from '../../../lib/core/call/index.ts'
import {
  type Catalog,
  formatAmount,
  type Model,
  parseAmount,
  priceOn,
} from '../../../lib/core/catalog/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { costOf, WorstCase } from '../../../lib/middleware/billing-guard/cost.ts'
import { configWith, LINE } from '../../core/config/config.ts'
import { loadConfig } from '../../support/any-config.ts'

const USAGE = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 7, source: 'measured' } as const

function catalogOf(price: object, ...lines: object[]): Catalog {
  return loadConfig(
    configWith({
      models: [{ id: 'chat', kind: 'chat', price }],
      lines: lines.map((line, i) => ({ ...LINE, id: `line-${i}`, ...line })),
    }),
  ).catalog
}

/** The amount held for a chat with this many tokens of input and at most 7 tokens of output. */
function held(catalog: Catalog, json: object, estimatedInputTokens: number): string {
  const request = {
    operation: OPERATIONS.find(({ name }) => name === 'chat.completions'),
    model: catalog.models.get('chat') as Model,
    fallbacks: [],
    ...{ estimatedInputTokens, maxOutputTokens: 7, answers: 1, webSearches: 0 },
    body: { raw: Buffer.from('{}'), json },
  } as unknown as CallRequest
  return formatAmount(new WorstCase().of(catalog, request, null))
}

describe('the hold for a call', () => {
  it('covers the tier of service that it asks for, and the usual one, whatever tiers there are', () => {
    const amount = fc.nat(9).map(String)
    const tier = fc
      .record(
        {
          aboveInputTokens: fc.constantFrom(40, 60),
          serviceTier: fc.constantFrom('priority', 'flex', 'fast'),
          inputPerMillion: amount,
          outputPerMillion: amount,
        },
        { requiredKeys: [] },
      )
      .filter(
        ({ aboveInputTokens, serviceTier }) => aboveInputTokens !== undefined || serviceTier !== undefined,
      )
    const tiers = fc.uniqueArray(tier, { selector: (of) => `${of.aboveInputTokens} ${of.serviceTier}` })
    const asked = fc.constantFrom(
      [{}, undefined],
      [{ service_tier: 'default' }, undefined],
      [{ service_tier: 'priority' }, 'priority'],
      [{ service_tier: 'flex' }, 'flex'],
      [{ service_tier: 'priority', speed: 'fast' }, 'fast'],
    )
    fc.assert(
      fc.property(
        tiers,
        tiers,
        asked,
        fc.integer({ min: 1, max: 50 }),
        (one, other, [json, served], input) => {
          const price = { inputPerMillion: '1', outputPerMillion: '1', tiers: one }
          const catalog = catalogOf(price, {}, { price: { tiers: other } })
          const most = held(catalog, json, input)
          for (const line of catalog.lines)
            for (const tierServed of [undefined, served]) {
              const usage = { ...USAGE, inputTokens: input, ...(tierServed && { serviceTier: tierServed }) }
              const cost = costOf(usage, priceOn(catalog.models.get('chat') as Model, line)).amount
              assert.ok(parseAmount(most) >= cost, `${most} for ${formatAmount(cost)} in ${tierServed}`)
            }
        },
      ),
    )
    const tiered = [{ serviceTier: 'priority', outputPerMillion: '2' }]
    const dear = catalogOf({ outputPerMillion: '1', tiers: tiered }, {})
    const asks = [{}, { service_tier: 'auto' }, { service_tier: 'priority' }]
    assert.deepEqual(
      asks.map((json) => held(dear, json, 1)),
      ['0.000007', '0.000007', '0.000014'],
      'no more is held for calls that do not ask for it',
    )
  })
})
