import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HELD, plain, streamed } from '../support/metered-usage.ts'

describe('the usage of a stream', () => {
  it('is what was reported, and what came behind that', () => {
    assert.deepEqual(streamed({}), plain(50, 7, 'measured'))
    assert.deepEqual(streamed({ unreportedOutput: 3 }), plain(50, 10, 'estimated'))
    assert.deepEqual(streamed({ usage: { inputTokens: 50 } }), plain(50, 9, 'estimated'))
    assert.deepEqual(streamed({ usage: {} }), plain(40, 9, 'estimated'))
    const usage = { inputTokens: 50, outputTokens: HELD.output + 1 }
    const bounded = { ...plain(50, HELD.output + 3, 'bounded'), reported: usage }
    assert.deepEqual(streamed({ usage, unreportedOutput: 3 }), bounded)
  })

  it('is the more of what was reported and what has passed, where it broke off', () => {
    assert.deepEqual(streamed({ whole: false }), plain(50, 9, 'estimated'))
    assert.deepEqual(
      streamed({ whole: false, usage: { inputTokens: 50, outputTokens: 11 } }),
      plain(50, 11, 'estimated'),
    )
    assert.deepEqual(streamed({ whole: false, unreportedOutput: 5 }), plain(50, 12, 'estimated'))
  })

  it('has the duration that is reported, where the report covers all that came', () => {
    const spoken = (reader: object, outputTokens: number | undefined, audioOutputTokens?: number) =>
      streamed({ usage: { inputTokens: 50, outputTokens, audioOutputTokens }, ...reader }).audioOutputTokens
    const estimated = { estimatedAudio: 6 }
    assert.equal(spoken(estimated, 7, 5), 5)
    assert.equal(spoken(estimated, 7), undefined)
    for (const reader of [{ whole: false }, { unreportedOutput: 1 }]) {
      assert.equal(spoken({ ...estimated, ...reader }, 7, 5), 6)
      assert.equal(spoken({ ...estimated, ...reader }, 7, 7), 7)
      assert.equal(spoken(reader, 7, 5), 5)
      assert.equal(spoken(reader, 7), undefined)
    }
    assert.equal(spoken(estimated, undefined), 6)
  })
})

describe('the usage of a stream of images', () => {
  const perImage = { perImage: 1n }

  it('is each image that has begun, as measured where the stream is whole', () => {
    const usage = { images: 2 }
    assert.deepEqual(streamed({ usage }, 'images', perImage), { ...plain(0, 0, 'measured'), images: 2 })
    const broken = streamed({ usage, whole: false }, 'images', perImage)
    assert.deepEqual(broken, { ...plain(0, 0, 'estimated'), images: 2 })
    const beyond = { ...plain(0, 0, 'bounded'), images: 2, reported: { images: 3 } }
    for (const whole of [true, false])
      assert.deepEqual(streamed({ usage: { images: 3 }, whole }, 'images', perImage), beyond)
  })

  it('is its tokens, reported or estimated, where images have no price', () => {
    const usage = { images: 1, inputTokens: 50, outputTokens: 7 }
    assert.deepEqual(streamed({ usage }, 'images'), { ...plain(50, 7, 'measured'), images: 1 })
    const silent = streamed({ usage: { images: 1 } }, 'images')
    assert.deepEqual(silent, { ...plain(40, 9, 'estimated'), images: 1 })
    assert.deepEqual(streamed({ usage, unreportedOutput: 5 }, 'images').outputTokens, 7)
  })
})
