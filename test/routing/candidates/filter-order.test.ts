import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallRequest, Elimination } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import {
  type FilteredCall,
  type FilteredRequest,
  filterCandidates,
} from '../../../lib/routing/candidates/filters.ts'
import { candidate, circuitThat, type Given, opened, PRICE } from '../support/one-line.ts'

function request(members: object = {}): CallRequest {
  const nothing = {
    model: {},
    features: new Set(),
    windowTokens: 0,
    maxOutputTokens: undefined,
    constraint: undefined,
  }
  const body = { raw: Buffer.from('{}'), json: {} }
  return { operation: { name: 'chat' }, body, ...nothing, ...members } as unknown as CallRequest
}

const NOBODY: FilteredCall = { principal: null, pin: null }

/** Which filter removes a line, beside one that serves everything. */
function removedBy(given: Given, asked: Partial<FilteredRequest> = {}, call: FilteredCall = NOBODY) {
  const eliminated: Elimination[] = []
  const lines = [candidate('other'), candidate('line', given)]
  const all = { request: request(), ...asked }
  const left = filterCandidates(lines, call, all, eliminated)
  assert.deepEqual(
    left.map(({ line }) => line.id),
    eliminated.length === 0 ? ['other', 'line'] : ['other'],
  )
  return eliminated.length === 0 ? undefined : [eliminated[0]?.reason, eliminated[0]?.detail]
}

describe('a line that more than one filter removes', () => {
  // All that can be wrong with a line, in the order of the filters.
  const constraint = { ignore: ['bad'], maxPrice: { prompt: 0n } }
  const call = {
    principal: { lineRegions: ['eu'] },
    pin: { line: 'other', holds: 'the file' },
  } as unknown as FilteredCall
  const everything = { features: new Set(['tools']), windowTokens: 1000, constraint }
  const faults = {
    line: { provider: 'bad', region: 'us', features: new Set() },
    state: { enabled: false, restMs: 5, ...opened() },
    missing: 'has no such endpoint',
    contextWindow: 10,
  }

  it('appears in the trace with the first of these filters', () => {
    const line = candidate('line', faults)
    const other = candidate('other', { line: { region: 'eu' } })
    const mend: [reason: string, () => void][] = [
      ['pinned', () => Object.assign(line.line, { id: 'other' })],
      ['disabled', () => Object.assign(line.state, { enabled: true })],
      ['provider_constraint', () => Object.assign(line.line, { provider: 'good' })],
      ['region', () => Object.assign(line.line, { region: 'eu' })],
      ['protocol', () => Object.assign(line, { missing: undefined })],
      ['feature', () => Object.assign(line.line, { features: undefined })],
      ['context_window', () => Object.assign(line, { contextWindow: undefined })],
      ['price_ceiling', () => Object.assign(line, { price: { ...PRICE, inputPerMillion: 0n } })],
      ['resting', () => Object.assign(line.modelState, { restMs: 0 })],
      ['circuit_open', () => Object.assign(line.modelState.circuit, { admits: () => true })],
    ]
    Object.assign(other, { price: { ...PRICE, inputPerMillion: 0n } })
    for (const [reason, mended] of mend) {
      const eliminated: Elimination[] = []
      filterCandidates([other, line], call, { request: request(everything) }, eliminated)
      assert.deepEqual(
        eliminated.map((one) => one.reason),
        [reason],
      )
      mended()
    }
    assert.equal(filterCandidates([other, line], call, { request: request(everything) }, []).length, 2)
  })

  it('passes fewer filters if the request is passed on unread', () => {
    const unread: FilteredRequest = { request: null }
    const removed = (given: Given) => {
      const eliminated: Elimination[] = []
      filterCandidates(
        [candidate('other', { line: { region: 'eu' } }), candidate('line', given)],
        { ...call, pin: null },
        unread,
        eliminated,
      )
      return eliminated.map(({ reason }) => reason)
    }
    assert.deepEqual(removed(faults), ['disabled'])
    assert.deepEqual(removed({ ...faults, state: {} }), ['region'])
    assert.deepEqual(removed({ ...faults, state: {}, line: { provider: 'bad', region: 'eu' } }), [])
    assert.deepEqual(removed({ line: { region: 'eu' }, state: opened() }), ['circuit_open'])
  })
})

describe('a filter', () => {
  it('keeps a window of exactly the needed size, including the requested output', () => {
    const needs = request({ windowTokens: 0, maxOutputTokens: 100 })
    assert.equal(removedBy({ contextWindow: 100 }, { request: needs }), undefined)
    assert.deepEqual(removedBy({ contextWindow: 99 }, { request: needs }), [
      'context_window',
      'a window of 99, about 100 needed',
    ])
  })

  it('keeps a price of exactly the maximum, for each unit', () => {
    const most = { prompt: 1n, completion: 2n, request: 3n, image: 4n }
    const asked = (maxPrice: object) => {
      const eliminated: Elimination[] = []
      filterCandidates(
        [candidate('line')],
        NOBODY,
        { request: request({ constraint: { maxPrice } }) },
        eliminated,
      )
      return eliminated[0]?.detail
    }
    assert.equal(asked(most), undefined)
    for (const unit of ['prompt', 'completion', 'request', 'image'] as const)
      assert.equal(asked({ ...most, [unit]: most[unit] - 1n }), `exceeds max_price in ${unit}`)
    assert.equal(asked({ prompt: 0n, image: 0n }), 'exceeds max_price in prompt, image')
  })

  it('compares the price of the requested service tier', () => {
    const price = { ...PRICE, tiers: [{ serviceTier: 'priority', inputPerMillion: 9n }] }
    const constraint = { maxPrice: { prompt: 8n } }
    const asking = (json: object) => ({ request: request({ constraint, body: { json } }) })
    const tooDear = ['price_ceiling', 'exceeds max_price in prompt']
    const rows = [
      [{}, undefined],
      [{ service_tier: 'flex' }, undefined],
      [{ service_tier: 'priority' }, tooDear],
    ] as const
    for (const [json, removed] of rows) assert.deepEqual(removedBy({ price }, asking(json)), removed)
  })

  it('accepts the name of a line or of its provider, and a region only if the line has one', () => {
    const asked = (constraint: object, line: object = {}) =>
      removedBy({ line }, { request: request({ constraint }) })?.[1]
    assert.equal(asked({ only: ['line', 'other'] }), undefined)
    assert.equal(asked({ only: ['openai'] }), undefined)
    assert.equal(asked({ only: ['other'] }), 'only: ["other"]')
    assert.equal(asked({ ignore: ['line'] }), 'ignore: ["line"]')
    assert.equal(asked({ ignore: ['elsewhere'] }), undefined)
    assert.equal(asked({ order: ['other'], allowFallbacks: true }), undefined)
    assert.equal(asked({ order: ['other'], allowFallbacks: false }), 'order without fallbacks: ["other"]')
    assert.equal(asked({ order: ['openai'], allowFallbacks: false }), undefined)
    const eu = { principal: { lineRegions: ['eu'] }, pin: null } as unknown as FilteredCall
    const regions = (line: object) => {
      const eliminated: Elimination[] = []
      filterCandidates(
        [candidate('other', { line: { region: 'eu' } }), candidate('line', { line })],
        eu,
        { request: null },
        eliminated,
      )
      return eliminated[0]?.detail
    }
    assert.equal(regions({ region: 'eu' }), undefined)
    assert.equal(regions({}), 'region unset; the account allows ["eu"]')
  })

  it('returns the features that a line lacks, if it lists its features', () => {
    const features = new Set(['tools', 'stream'])
    const asked = (own: readonly string[] | undefined) =>
      removedBy({ line: { features: own && new Set(own) } }, { request: request({ features }) })
    assert.equal(asked(undefined), undefined)
    assert.equal(asked(['stream', 'tools', 'json']), undefined)
    assert.deepEqual(asked(['stream']), ['feature', 'lacks tools'])
    assert.deepEqual(asked([]), ['feature', 'lacks tools, stream'])
  })

  it('returns the wait of a line that is unavailable, and whether its probe is taken', () => {
    assert.deepEqual(removedBy({ state: { restMs: 2 } }), [
      'resting',
      'rate-limited by the upstream for another 2 ms',
    ])
    assert.deepEqual(removedBy({ state: opened() }), ['circuit_open', 'open'])
    const probing = { circuit: circuitThat('half_open', false, 0) }
    assert.deepEqual(removedBy({ state: probing }), [
      'circuit_open',
      'half-open, and another call has the probe',
    ])
  })

  it('removes a line of another protocol for a request that cannot be translated, or has members without a counterpart', () => {
    const unfitOf = (code: 'no_candidate' | 'unsupported_feature', param?: string) => ({
      unfit: (line: { id: string }) => (line.id === 'line' ? new GatewayError(code, { param }) : undefined),
    })
    assert.deepEqual(removedBy({}, unfitOf('unsupported_feature', 'top_k')), [
      'feature',
      'openai cannot express top_k',
    ])
    assert.deepEqual(removedBy({}, unfitOf('unsupported_feature')), [
      'feature',
      'openai cannot express this request',
    ])
    assert.equal(removedBy({ missing: 'has no such endpoint' }, { unfit: () => undefined }), undefined)
  })
})
