import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FREE } from '../../../../lib/core/catalog/index.ts'
import type { ReportedUsage } from '../../../../lib/core/operations/index.ts'
import { usageOfAnswer } from '../../../../lib/middleware/route/attempt/metering.ts'
import { HELD, plain, requestOf, used, WINDOW } from '../support/metered-usage.ts'

describe('the usage of an answer', () => {
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

  const bounded = (inputTokens: number, outputTokens: number, reported: ReportedUsage) => ({
    ...plain(inputTokens, outputTokens, 'bounded'),
    reported,
  })

  it('is the input that the window has room for', () => {
    const within = { inputTokens: WINDOW, outputTokens: 7 }
    assert.deepEqual(used('tokens', within), plain(WINDOW, 7, 'measured'))
    const beyond = { inputTokens: WINDOW + 1, outputTokens: 7 }
    assert.deepEqual(used('tokens', beyond), bounded(WINDOW, 7, beyond))
    const tenRounds = { inputTokens: 10 * WINDOW, outputTokens: 7 }
    assert.deepEqual(used('tokens', tenRounds, {}, { tools: 1 }), plain(10 * WINDOW, 7, 'measured'))
    const eleven = { inputTokens: 10 * WINDOW + 1, outputTokens: 7 }
    assert.deepEqual(used('tokens', eleven, {}, { tools: 1 }), bounded(10 * WINDOW, 7, eleven))
    const both = { tools: 2 }
    assert.equal(used('tokens', tenRounds, {}, both).source, 'measured')
    const many = { estimatedInputTokens: 4000 }
    const held = { inputTokens: 5000, outputTokens: 7 }
    assert.deepEqual(used('tokens', held, {}, many), plain(5000, 7, 'measured'), 'of many texts')
  })

  it('is the input of any window, up to ten million, where the window is not known', () => {
    const unknown = (inputTokens: number) =>
      usageOfAnswer(
        requestOf('tokens'),
        { usage: { inputTokens, outputTokens: 7 }, estimateOutput: () => 9 },
        { price: FREE, contextWindow: undefined },
      )
    assert.deepEqual(unknown(10_000_000), plain(10_000_000, 7, 'measured'))
    assert.equal(unknown(10_000_001).inputTokens, HELD.input)
  })

  it('keeps of a report what is believed of it', () => {
    const sound = { cachedInputTokens: 10, cacheWriteTokens: 20, reasoningTokens: 3, serviceTier: 'flex' }
    const reported = { ...sound, inputTokens: 40, outputTokens: 10 * HELD.output + 1, webSearches: 2 }
    assert.deepEqual(used('tokens', reported, {}, { webSearches: 1 }), {
      ...bounded(40, 10 * HELD.output, reported),
      ...{ ...sound, webSearches: 2 },
    })
    const images = { images: 2, inputTokens: 40, outputTokens: 9_999_999 }
    assert.equal(used('images', images, {}, { webSearches: 0 }).images, 2)
    const silent = { inputTokens: 2 * WINDOW, outputTokens: 7 }
    const { webSearches, images: none } = used('images', silent, {}, { webSearches: 3 })
    assert.deepEqual([webSearches, none], [1, undefined], 'what is not told is estimated, as ever')
    const beyond = { inputTokens: 40, outputTokens: 7, images: 3, searchUnits: 2 }
    const { images: counted, searchUnits } = used('images', beyond)
    assert.deepEqual([counted, searchUnits], [2, 2])
  })

  it('reports pieces of its own endpoint alone', () => {
    const reported = { inputTokens: 40, outputTokens: 7, images: 2, searchUnits: 2 }
    assert.deepEqual(used('tokens', reported, { perImage: 1n, perSearchUnit: 1n }), plain(40, 7, 'measured'))
  })

  it('has spoken for as long as is reported, or as it is estimated', () => {
    const spoken = (usage: ReportedUsage, estimateAudio?: () => number) =>
      usageOfAnswer(
        requestOf('tokens'),
        { usage, estimateOutput: () => 9, ...(estimateAudio && { estimateAudio }) },
        { price: FREE, contextWindow: WINDOW },
      ).audioOutputTokens
    assert.equal(
      spoken({ outputTokens: 7, audioOutputTokens: 5 }, () => 3),
      5,
    )
    assert.equal(
      spoken({ outputTokens: 7 }, () => 3),
      undefined,
    )
    assert.equal(
      spoken({ audioOutputTokens: 5 }, () => 3),
      3,
    )
    assert.equal(
      spoken({}, () => 3),
      3,
    )
    assert.equal(spoken({}), undefined)
  })

  it('has no more cached or written input than input that is believed', () => {
    const reported = {
      inputTokens: 2 * WINDOW,
      cachedInputTokens: WINDOW,
      cacheWriteTokens: WINDOW,
      outputTokens: 7,
    }
    assert.deepEqual(used('tokens', reported), {
      ...bounded(WINDOW, 7, reported),
      cachedInputTokens: WINDOW,
    })
    const parts = { cachedInputTokens: WINDOW, cacheWriteTokens: 1, outputTokens: 7 }
    assert.deepEqual(used('tokens', parts), {
      ...bounded(WINDOW, 7, parts),
      cachedInputTokens: WINDOW,
    })
  })

  it('is the output that the model can make, of each answer, whatever the request allows, or that came', () => {
    const output = (outputTokens: number, members = {}) =>
      used('tokens', { inputTokens: 40, outputTokens }, {}, members)
    assert.deepEqual(output(HELD.output), plain(40, HELD.output, 'measured'))
    const reported = { inputTokens: 40, outputTokens: HELD.output + 1 }
    assert.deepEqual(output(HELD.output + 1), bounded(40, HELD.output, reported))
    assert.equal(output(2 * HELD.output, { answers: 2 }).source, 'measured')
    assert.equal(output(2 * HELD.output + 1, { answers: 2 }).outputTokens, 2 * HELD.output)
    assert.deepEqual(output(HELD.output, { maxOutputTokens: 5 }), plain(40, HELD.output, 'measured'))
    assert.equal(output(HELD.output + 1, { maxOutputTokens: 5 }).outputTokens, HELD.output)
    const small = { model: { maxOutputTokens: 5 } }
    assert.deepEqual(output(9, small), plain(40, 9, 'measured'), 'came')
    assert.equal(output(10, small).outputTokens, 9)
    const unlisted = { model: {}, maxOutputTokens: 5 }
    assert.deepEqual(output(WINDOW, unlisted), plain(40, WINDOW, 'measured'), 'within the window')
    assert.equal(output(WINDOW + 1, unlisted).outputTokens, WINDOW)
  })

  it('is as much again for each round in which a provider may run tools', () => {
    for (const loops of [{ tools: 1 }, { webSearches: 1 }]) {
      const output = (outputTokens: number) =>
        used('tokens', { inputTokens: 40, outputTokens }, {}, { maxOutputTokens: 5, ...loops })
      assert.equal(output(10 * HELD.output).source, 'measured')
      assert.equal(output(10 * HELD.output + 1).outputTokens, 10 * HELD.output)
    }
  })

  it('are images, and tokens only where they are reported, where images have a price', () => {
    const perImage = { perImage: 1n }
    assert.deepEqual(used('images', { images: 2 }, perImage), { ...plain(0, 0, 'measured'), images: 2 })
    assert.deepEqual(used('images', { images: 2, outputTokens: 7 }, perImage), {
      ...plain(0, 7, 'measured'),
      images: 2,
    })
    assert.deepEqual(used('images', { images: 3 }, perImage), {
      ...bounded(0, 0, { images: 3 }),
      images: 2,
    })
    assert.deepEqual(used('images', { images: 2 }), { ...plain(40, 9, 'estimated'), images: 2 })
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
    assert.equal(searches({ searchUnits: 2 }).source, 'measured')
    assert.deepEqual(searches({}), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({ inputTokens: 5 }), { ...plain(5, 0, 'estimated'), searchUnits: 2 })
    const both = { ...perSearchUnit, inputPerMillion: 1n }
    assert.deepEqual(searches({ inputTokens: 5 }, both), plain(5, 0, 'measured'), 'its tokens are paid')
    assert.deepEqual(searches({ inputTokens: 1 }, both), plain(1, 0, 'measured'))
    assert.deepEqual(searches({ inputTokens: 0 }, both), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({}, both), { ...plain(0, 0, 'estimated'), searchUnits: 2 })
    assert.deepEqual(searches({ searchUnits: 3 }), {
      ...bounded(0, 0, { searchUnits: 3, outputTokens: 0 }),
      searchUnits: 2,
    })
    assert.deepEqual(searches({ searchUnits: 1 }, {}), { ...plain(40, 0, 'estimated'), searchUnits: 1 })
  })
})

describe('the searches of an answer', () => {
  const perWebSearch = { perWebSearch: 1n }
  const searched = (webSearches: number | undefined, asked: number, price: object = perWebSearch) => {
    const reported = { inputTokens: 5, outputTokens: 7, ...(webSearches !== undefined && { webSearches }) }
    const { source, webSearches: counted = 0 } = used('tokens', reported, price, { webSearches: asked })
    return [counted, source]
  }

  it('are those reported, up to those that were held for where they have a price', () => {
    assert.deepEqual(searched(0, 3), [0, 'measured'])
    assert.deepEqual(searched(3, 3), [3, 'measured'])
    assert.deepEqual(searched(4, 3), [3, 'bounded'])
    assert.deepEqual(searched(1, 0), [0, 'bounded'])
    assert.deepEqual(searched(4, 3, {}), [4, 'measured'])
  })

  it('are one where the request may search and the answer does not say how often', () => {
    assert.deepEqual(searched(undefined, 3), [1, 'measured'])
    assert.deepEqual(searched(undefined, 1), [1, 'measured'])
    assert.deepEqual(searched(undefined, 0), [0, 'measured'])
  })
})

describe('the parts of an answer', () => {
  it('are never more than what they are part of', () => {
    const { audioInputTokens, cacheWrite1hTokens, reasoningTokens, audioOutputTokens } = used('tokens', {
      inputTokens: 50,
      cachedInputTokens: 10,
      cacheWriteTokens: 20,
      cacheWrite1hTokens: 30,
      audioInputTokens: 40,
      outputTokens: 7,
      reasoningTokens: 8,
      audioOutputTokens: 9,
    })
    assert.deepEqual([audioInputTokens, cacheWrite1hTokens], [20, 20])
    assert.deepEqual([reasoningTokens, audioOutputTokens], [7, 7])
  })

  it('are reported, each for itself, from the first token on', () => {
    const whole = { inputTokens: 50, cacheWriteTokens: 20, outputTokens: 7 }
    for (const part of [
      { cacheWrite1hTokens: 1 },
      { audioInputTokens: 1 },
      { reasoningTokens: 1 },
      { audioOutputTokens: 1 },
      { serviceTier: 'flex' },
      { webSearches: 1 },
    ])
      assert.deepEqual(used('tokens', { ...whole, ...part }), {
        ...plain(50, 7, 'measured'),
        ...{ cacheWriteTokens: 20, ...part },
      })
    const every = Object.entries({
      ...{ cacheWrite1hTokens: 1, audioInputTokens: 1, reasoningTokens: 1, audioOutputTokens: 1 },
      webSearches: 1,
    })
    for (const one of every)
      for (const other of every) {
        const parts = Object.fromEntries([one, other])
        const all = { ...plain(50, 7, 'measured'), cacheWriteTokens: 20, ...parts }
        assert.deepEqual(used('tokens', { ...whole, ...parts }), all)
      }
  })

  it('are left out where there are none', () => {
    const zeros = { cacheWrite1hTokens: 0, audioInputTokens: 0, reasoningTokens: 0, audioOutputTokens: 0 }
    for (const reasoningTokens of [0, 1]) {
      const usage = used('tokens', { inputTokens: 50, outputTokens: 7, ...zeros, reasoningTokens })
      assert.deepEqual(usage, {
        ...plain(50, 7, 'measured'),
        ...(reasoningTokens > 0 && { reasoningTokens }),
      })
    }
  })
})
