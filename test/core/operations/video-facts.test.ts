import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { videos, videoTasks } from '../../../lib/core/operations/index.ts'
import { TOKENS_PER_IMAGE, TOKENS_PER_REQUEST } from '../../../lib/core/operations/tokens/token-estimate.ts'

type Json = Record<string, unknown>

const NO_BYTES = Buffer.alloc(0)
const text = (said: string) => ({ type: 'text', text: said })
const image = { type: 'image_url', image_url: { url: 'https://a.test/b.png' } }

/** The facts of a task, with a token for each character of its text. */
const task = (content: Json[], members: Json = {}) =>
  videoTasks.facts({ model: 'film', content, ...members }, NO_BYTES, ({ length }) => length)
const video = (members: Json) =>
  videos.facts({ model: 'film', prompt: 'A cat', ...members }, NO_BYTES, ({ length }) => length)

describe('how long a task’s video is at most', () => {
  const seconds = (members: Json, said = 'A cat') => task([text(said)], members).units

  it('is what its duration says, up to an hour', () => {
    assert.deepEqual(
      [1, 8, 3600].map((duration) => seconds({ duration })),
      [1, 8, 3600],
    )
    assert.equal(seconds({}, 'A cat --dur 9999'), 3600)
  })

  it('is what its frames make at 24 a second, begun seconds whole, and at least one', () => {
    assert.deepEqual(
      [1, 24, 25, 48, 121].map((frames) => seconds({ frames })),
      [1, 1, 2, 2, 6],
    )
    assert.equal(seconds({}, 'A cat --frames 0'), 1)
    assert.equal(seconds({ frames: 240, duration: 3 }), 10)
  })

  it('is 5 seconds where nothing is said, and 12 where the line may choose', () => {
    assert.equal(seconds({}), 5)
    assert.equal(seconds({ duration: null, frames: null }), 5)
    assert.equal(seconds({ duration: -1 }), 12)
    assert.equal(seconds({}, 'A cat --duration 0'), 12)
  })

  it('is as a flag in the text says, unless a member says otherwise', () => {
    assert.equal(seconds({}, 'A cat --dur 7 --ratio 16:9'), 7)
    assert.equal(seconds({ duration: 3 }, 'A cat --dur 7'), 3)
    assert.equal(seconds({}, 'A cat--dur 7'), 5)
  })
})

describe('what a task is made of', () => {
  it('are its texts and its pictures, of which the first is named', () => {
    const facts = task([text('A cat'), image, text('and a dog'), image])
    assert.equal(facts.images, 2)
    assert.deepEqual([...facts.features], ['vision'])
    assert.equal(facts.featureParams.get('vision'), 'content[1]')
    const texts = 'A cat\nand a dog'.length
    assert.equal(facts.estimatedInputTokens, TOKENS_PER_REQUEST + texts + 2 * TOKENS_PER_IMAGE)
  })

  it('is one answer, not streamed, of a model', () => {
    const { model, stream, answers, messages, tools, maxOutputTokens, images, features } = task([
      text('A cat'),
    ])
    assert.deepEqual([model, stream, answers, messages, tools], ['film', false, 1, 0, 0])
    assert.deepEqual([maxOutputTokens, images, features.size], [undefined, 0, 0])
  })

  it('begins its prompt with all texts, line by line, and nothing else', () => {
    const content = [text('A cat'), { ...image, text: 'no prompt' }, text('and a dog')]
    assert.equal(videoTasks.promptPrefix({ content }), 'A cat\nand a dog')
    assert.equal(videoTasks.promptPrefix({ content: [text('x'.repeat(2000))] }), 'x'.repeat(1024))
  })
})

describe('the body of a task', () => {
  const judge = (members: Json) =>
    videoTasks.schema.safeParse({ model: 'm', content: [text('a')], ...members })

  it('has some content, a picture with a URL, and a length within an hour', () => {
    const fitting = [
      { duration: -1 },
      { duration: 3600 },
      { frames: 1 },
      { frames: 100_000 },
      { content: [image] },
    ]
    for (const members of fitting) assert.equal(judge(members).success, true, JSON.stringify(members))
    const unfit = [
      { content: [] },
      { content: [{ type: 'image_url', image_url: { url: '' } }] },
      { duration: -2 },
      { duration: 3601 },
      { duration: 1.5 },
      { frames: 0 },
      { frames: 100_001 },
      { seed: 0.5 },
      { model: '' },
    ]
    for (const members of unfit) assert.equal(judge(members).success, false, JSON.stringify(members))
  })
})

describe('a video request', () => {
  it('is as long as it says, in either spelling, else 4 seconds', () => {
    assert.deepEqual(
      [{ seconds: 8 }, { seconds: '12' }, {}, { seconds: null }].map((members) => video(members).units),
      [8, 12, 4, 4],
    )
  })

  it('counts what it is made from as one picture', () => {
    const { images, features, featureParams, estimatedInputTokens } = video({
      input_reference: { file_id: 'f' },
    })
    assert.deepEqual([images, [...features]], [1, ['vision']])
    assert.equal(featureParams.get('vision'), 'input_reference')
    assert.equal(estimatedInputTokens, TOKENS_PER_REQUEST + 'A cat'.length + TOKENS_PER_IMAGE)
    const plain = video({})
    assert.deepEqual([plain.images, plain.features.size], [0, 0])
    assert.equal(plain.estimatedInputTokens, TOKENS_PER_REQUEST + 'A cat'.length)
  })

  it('begins its prompt with the prompt', () => {
    assert.equal(videos.promptPrefix({ prompt: 'A cat' }), 'A cat')
    assert.equal(videos.promptPrefix({ prompt: 'x'.repeat(2000) }).length, 1024)
  })
})
