import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ImageStreamReader } from '../../../../lib/core/operations/images/images-stream.ts'

const PARTIAL = { type: 'image_generation.partial_image', b64_json: 'AAAA' }
const DONE = { type: 'image_generation.completed', b64_json: 'AAAA' }
const usageOf = (input: number, output: number) => ({
  usage: { input_tokens: input, output_tokens: output, total_tokens: input + output },
})

function reading(asked: number) {
  const reader = new ImageStreamReader(asked)
  const read = (data: object | string, event?: string) =>
    reader.read({
      ...(event !== undefined && { event }),
      data: typeof data === 'string' ? data : JSON.stringify(data),
    } as Parameters<ImageStreamReader['read']>[0])
  return { reader, read }
}

describe('the stream of an image', () => {
  it('is whole when each started image is done, and over with the last requested one', () => {
    const { reader, read } = reading(2)
    const seen = [PARTIAL, PARTIAL, DONE, PARTIAL, DONE].map((event) => {
      const { output, finished, last } = read(event)
      return [output, finished ?? false, last ?? false, reader.whole, reader.usage.images]
    })
    assert.deepEqual(seen, [
      [true, false, false, false, 1],
      [true, false, false, false, 1],
      [true, false, false, true, 1],
      [true, false, false, false, 2],
      [true, true, true, true, 2],
    ])
  })

  it('has output with its first image, and is empty before that', () => {
    const { reader, read } = reading(1)
    for (const event of [
      '',
      { type: 'image_generation.started' },
      { ...PARTIAL, b64_json: '' },
      { url: 'x' },
    ])
      assert.notEqual(read(event).output, true)
    assert.equal(reader.substance, 'empty')
    read({ type: 'image_generation.partial_image', url: 'https://x' })
    assert.equal(reader.substance, 'output')
  })

  it('is recognised by the name of the event if its data has no type', () => {
    const { reader, read } = reading(1)
    assert.equal(read({ b64_json: 'AAAA' }, 'image_edit.completed').last, true)
    assert.equal(reader.whole, true)
  })

  for (const end of ['[DONE]', ' [DONE]', '[DONE]\n'])
    it(`is over at ${JSON.stringify(end)}`, () => {
      const { reader, read } = reading(1)
      assert.equal(read(end).last, true)
      assert.equal(reader.whole, false)
    })

  it('has the tokens reported by all images, and the input of the image that reports most', () => {
    const { reader, read } = reading(2)
    read({ ...DONE, ...usageOf(7, 100) })
    read({ ...DONE, ...usageOf(5, 30) })
    const { inputTokens, outputTokens, images } = reader.usage
    assert.deepEqual([inputTokens, outputTokens, images], [7, 130, 2])
    assert.equal(reader.estimatedOutput, 130)
  })

  it('has estimated tokens if an image reported none, or is not done', () => {
    const { reader, read } = reading(3)
    read({ ...DONE, ...usageOf(7, 100) })
    read(PARTIAL)
    assert.equal(reader.usage.outputTokens, undefined)
    const begun = reader.estimatedOutput
    assert.ok(begun > 100)
    read(PARTIAL)
    const more = reader.estimatedOutput
    assert.ok(more > begun)
    read(DONE)
    assert.deepEqual([reader.usage.outputTokens, reader.estimatedOutput], [undefined, more])
    read(DONE)
    assert.equal(reader.estimatedOutput - more, begun - 100 - (more - begun))
  })

  it('reports an error, by its type or as a member', () => {
    const error = { message: 'no' }
    for (const event of [{ type: 'error', error }, { error }])
      assert.deepEqual(reading(1).read(event).error, error)
    const bare = { type: 'error', code: 'x' }
    assert.deepEqual(reading(1).read(bare).error, bare)
    assert.deepEqual(reading(1).read({ code: 'x' }, 'error').error, { code: 'x' })
  })

  describe('of a series', () => {
    const made = (index: number) => ({
      type: 'image_generation.partial_succeeded',
      image_index: index,
      url: `https://images.example/${index}`,
      size: '2496x1664',
    })
    const error = { code: 'OutputImageSensitiveContentDetected', message: 'no' }
    const failed = { type: 'image_generation.partial_failed', image_index: 1, error }
    const end = (count: number) => ({
      type: 'image_generation.completed',
      usage: { generated_images: count, output_tokens: count * 16224, total_tokens: count * 16224 },
    })

    it('is over with the usage of all images, for any requested number and with or without a failed image', () => {
      const { reader, read } = reading(1)
      const seen = [made(0), failed, made(2)].map((event) => {
        const { output, last, error } = read(event)
        return [output, last, error, reader.usage.images]
      })
      assert.deepEqual(seen, [
        [true, false, undefined, 1],
        [false, false, undefined, 1],
        [true, false, undefined, 2],
      ])
      assert.equal(reader.usage.outputTokens, undefined)
      const { finished, last } = read(end(2))
      assert.deepEqual([finished, last, reader.whole], [true, true, true])
      const { images, outputTokens } = reader.usage
      assert.deepEqual([images, outputTokens], [2, 2 * 16224])
    })

    it('contains the reason if no image was made, and is empty without a reason', () => {
      const { reader, read } = reading(1)
      read(failed)
      assert.deepEqual(read(end(0)).error, error)
      assert.equal(reader.substance, 'empty')
      assert.deepEqual([reading(1).read(end(0)).last, reading(1).read(end(0)).error], [false, undefined])
    })
  })

  it('is malformed if it is not a stream of objects', () => {
    for (const data of ['[]', '"a"', '1', 'null', '{'])
      assert.throws(() => reading(1).read(data), SyntaxError, data)
  })
})
