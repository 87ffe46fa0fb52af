import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallRequest } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/catalog.ts'
import type { ReportedUsage, StreamReader } from '../../../lib/core/operations/index.ts'
import { usageOfAnswer, usageOfStream } from '../../../lib/middleware/route/attempt/metering.ts'

const MOST = 10_000_000

const requestOf = (priceUnit: string, members: object = {}) =>
  ({
    operation: { priceUnit },
    model: { contextWindow: undefined },
    estimatedInputTokens: 40,
    answers: 1,
    units: 2,
    ...members,
  }) as unknown as CallRequest

/** The usage of a whole answer, whose output is estimated at 9 tokens. */
const used = (priceUnit: string, usage: ReportedUsage, price: object = {}, members: object = {}) =>
  usageOfAnswer(requestOf(priceUnit, members), { usage, estimateOutput: () => 9 }, { ...FREE, ...price })

const plain = (inputTokens: number, outputTokens: number, source: string) => ({
  inputTokens,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens,
  source,
})

describe('what an answer has used', () => {
  it('is what its line reports, zeros included', () => {
    assert.deepEqual(used('tokens', { inputTokens: 50, outputTokens: 7 }), plain(50, 7, 'measured'))
    assert.deepEqual(used('tokens', { inputTokens: 0, outputTokens: 0 }), plain(0, 0, 'measured'))
  })

  it('is estimated where the line reports nothing, in part or in whole', () => {
    assert.deepEqual(used('tokens', {}), plain(40, 9, 'estimated'))
    assert.deepEqual(used('tokens', { inputTokens: 50 }), plain(50, 9, 'estimated'))
    assert.deepEqual(used('tokens', { outputTokens: 7 }), plain(40, 7, 'estimated'))
  })

  it('has parts of its input that are never more than the whole, and an input never less than its parts', () => {
    const parts = (usage: ReportedUsage) => {
      const { inputTokens, cachedInputTokens, cacheWriteTokens } = used('tokens', usage)
      return [inputTokens, cachedInputTokens, cacheWriteTokens]
    }
    assert.deepEqual(parts({ inputTokens: 50, cachedInputTokens: 60, cacheWriteTokens: 5 }), [50, 50, 0])
    assert.deepEqual(parts({ inputTokens: 50, cachedInputTokens: 30, cacheWriteTokens: 30 }), [50, 30, 20])
    assert.deepEqual(parts({ cachedInputTokens: 30, cacheWriteTokens: 20 }), [50, 30, 20])
    assert.deepEqual(parts({ cachedInputTokens: 10, cacheWriteTokens: 20 }), [40, 10, 20])
  })

  it('is not what no answer can have used', () => {
    assert.deepEqual(used('tokens', { inputTokens: MOST, outputTokens: MOST }), plain(MOST, MOST, 'measured'))
    assert.deepEqual(
      used('tokens', { inputTokens: MOST + 1, outputTokens: MOST + 1 }),
      plain(40, 9, 'estimated'),
    )
    const cached = used('tokens', {
      inputTokens: 50,
      cachedInputTokens: MOST + 1,
      cacheWriteTokens: MOST + 1,
    })
    assert.deepEqual([cached.cachedInputTokens, cached.cacheWriteTokens], [0, 0])
    assert.equal(used('tokens', { outputTokens: 2 * MOST }, {}, { answers: 2 }).outputTokens, 2 * MOST)
    assert.equal(used('tokens', { outputTokens: 2 * MOST + 1 }, {}, { answers: 2 }).outputTokens, 9)
    const wide = { model: { contextWindow: MOST + 5 } }
    assert.equal(used('tokens', { inputTokens: MOST + 5 }, {}, wide).inputTokens, MOST + 5)
    assert.equal(used('tokens', { inputTokens: MOST + 6 }, {}, wide).inputTokens, 40)
  })

  it('are images, and tokens only where they are reported, where images have a price', () => {
    const perImage = { perImage: 1n }
    assert.deepEqual(used('images', { images: 3 }, perImage), { ...plain(0, 0, 'measured'), images: 3 })
    assert.deepEqual(used('images', { images: 3, outputTokens: 7 }, perImage), {
      ...plain(0, 7, 'measured'),
      images: 3,
    })
    assert.deepEqual(used('images', { images: 3 }), { ...plain(40, 9, 'estimated'), images: 3 })
    assert.deepEqual(used('images', { images: 0, inputTokens: 5, outputTokens: 0 }), {
      ...plain(5, 0, 'measured'),
      images: 0,
    })
  })

  it('are searches where they have a price: those reported, else those that the request comes to', () => {
    const perSearchUnit = { perSearchUnit: 1n }
    const searches = (usage: ReportedUsage, price: object = perSearchUnit) =>
      used('searches', { outputTokens: 0, ...usage }, price)
    assert.deepEqual(searches({ searchUnits: 1 }), { ...plain(0, 0, 'measured'), searchUnits: 1 })
    assert.deepEqual(searches({}), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({ inputTokens: 5 }), { ...plain(5, 0, 'estimated'), searchUnits: 2 })
    const both = { ...perSearchUnit, inputPerMillion: 1n }
    assert.deepEqual(searches({ inputTokens: 5 }, both), plain(5, 0, 'measured'), 'its tokens are paid')
    assert.deepEqual(searches({ inputTokens: 1 }, both), plain(1, 0, 'measured'))
    assert.deepEqual(searches({ inputTokens: 0 }, both), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({}, both), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({ searchUnits: 20 }), { ...plain(0, 0, 'measured'), searchUnits: 20 })
    assert.deepEqual(searches({ searchUnits: 21 }), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({ searchUnits: 1 }, {}), { ...plain(40, 0, 'estimated'), searchUnits: 1 })
  })
})

describe('what a stream has used', () => {
  const streamed = (reader: Partial<StreamReader>) =>
    usageOfStream(requestOf('tokens'), {
      whole: true,
      estimatedOutput: 9,
      unreportedOutput: 0,
      usage: { inputTokens: 50, outputTokens: 7 },
      ...reader,
    } as StreamReader)

  it('is what was reported, and what came behind that', () => {
    assert.deepEqual(streamed({}), plain(50, 7, 'measured'))
    assert.deepEqual(streamed({ unreportedOutput: 3 }), plain(50, 10, 'estimated'))
    assert.deepEqual(streamed({ usage: { inputTokens: 50 } }), plain(50, 9, 'estimated'))
    assert.deepEqual(streamed({ usage: {} }), plain(40, 9, 'estimated'))
  })

  it('is the more of what was reported and what has passed, where it broke off', () => {
    assert.deepEqual(streamed({ whole: false }), plain(50, 9, 'estimated'))
    assert.deepEqual(
      streamed({ whole: false, usage: { inputTokens: 50, outputTokens: 11 } }),
      plain(50, 11, 'estimated'),
    )
    assert.deepEqual(streamed({ whole: false, unreportedOutput: 5 }), plain(50, 12, 'estimated'))
  })
})
