import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  chatCompletions,
  estimateTokens,
  messages,
  responses,
  type StreamReader,
} from '../../../../lib/core/operations/index.ts'
import {
  countRawText,
  countText,
  soleTextMember,
} from '../../../../lib/core/operations/metering/output-tokens.ts'

describe('the tokens of a text delta', () => {
  it('are zero for an empty delta, and one for a few plain characters', () => {
    assert.equal(countText(''), 0)
    for (const text of ['a', '1234', "'ll", 'a1b2c3d4', '[]{}()<>', '\x7f'.repeat(8)])
      assert.equal(countText(text), 1, text)
    assert.ok(estimateTokens('a1b2c3d4') > 1, 'though it is estimated at more')
  })

  it('are estimated for a longer delta, or for another script', () => {
    for (const text of ['a1b2c3d4e', 'a1b2c3d\x80', '\x80a1b2c3d', 'Привет, мир!', '你好你好', '→←→'])
      assert.equal(countText(text), estimateTokens(text), text)
    assert.equal(countText('→←→'), 3)
    assert.equal(countText('a1b2c3d4e'), 9)
  })

  it('are those of the decoded text of its JSON', () => {
    const raw = (text: string) => Buffer.from(text).toString('latin1')
    assert.equal(countRawText('word'), 1)
    assert.equal(countRawText('a1b2c3d4e'), 9)
    assert.equal(countRawText('\\n\\n\\n\\n\\n'), 1, 'five line breaks, and not ten characters')
    assert.equal(countRawText('\\u2192\\u2190\\u2192'), 3)
    assert.equal(countRawText(raw('→←→')), 3)
    assert.equal(countRawText(raw('→\\n→')), countText('→\n→'))
    assert.equal(countRawText('\\'), 1, 'what is no JSON is counted as it stands')
    assert.equal(countRawText(''), 0)
  })
})

describe('the one member of a delta that holds text', () => {
  const KNOWN = new Set(['content', 'reasoning'])

  it('is the only member that is not empty', () => {
    assert.equal(soleTextMember({ content: 'a' }, KNOWN), 'content')
    assert.equal(
      soleTextMember({ role: 'assistant', type: 'text', reasoning: 'a', content: null }, KNOWN),
      'reasoning',
    )
    assert.equal(soleTextMember({ content: 'a', reasoning: '', refusal: null }, KNOWN), 'content')
  })

  it('is none if there is no such member, several, or one of another type', () => {
    const others = [
      {},
      { content: '' },
      { content: 'a', reasoning: 'b' },
      { refusal: 'a' },
      { content: 'a', refusal: 'b' },
      { content: ['a'] },
      { content: 7 },
      { content: 'a', tool_calls: [] },
      { role: 'assistant' },
    ]
    for (const delta of others) assert.equal(soleTextMember(delta, KNOWN), undefined, JSON.stringify(delta))
  })
})

/** Base64 of so many bytes: 2400 of them are a token of speech. */
const sound = (bytes: number) => 'A'.repeat((bytes * 4) / 3)
const WORDS = 'one two three four'
const PER_IMAGE = 1290

const chatOf = (...outputs: object[]) =>
  chatCompletions.readAnswer({ choices: outputs.map((message, index) => ({ index, message })) })
const chatReader = () => chatCompletions.streamReader({ json: {}, answers: 1 })
const chunk = (delta: object) => ({ choices: [{ index: 0, delta }] })

function read(reader: StreamReader, ...events: object[]) {
  const readings = events.map((event) => reader.read({ event: undefined, data: JSON.stringify(event) }))
  return { reader, output: readings.map(({ output }) => output) }
}

describe('a spoken answer', () => {
  const rows: [what: string, pieces: object[], tokens: number][] = [
    ['nothing', [{}], 0],
    ['sound', [{ data: sound(2400) }], 1],
    ['a little more sound', [{ data: sound(2403) }], 2],
    ['much sound', [{ data: sound(24_000) }], 10],
    ['words', [{ transcript: WORDS }], 4],
    ['words and less sound', [{ transcript: WORDS, data: sound(2400) }], 4],
    ['words and more sound', [{ transcript: WORDS, data: sound(24_000) }], 10],
    ['pieces of sound', [{ data: sound(1500) }, { data: sound(900) }, { data: sound(1200) }], 2],
    ['words with sound behind them', [{ transcript: WORDS }, { data: sound(24_000) }], 10],
    ['neither', [{ transcript: 7, data: 7 }], 0],
  ]
  for (const [what, pieces, tokens] of rows) {
    it(`is counted along a stream by its words or its sound, the larger of both: ${what}`, () => {
      const { reader } = read(chatReader(), ...pieces.map((audio) => chunk({ audio })))
      assert.deepEqual([reader.estimatedAudio, reader.estimatedOutput], [tokens, tokens])
      assert.equal(reader.unreportedOutput, tokens)
    })
    if (pieces.length === 1)
      it(`is counted the same as a whole: ${what}`, () => {
        const [audio] = pieces
        const reading = chatOf({ audio }, { content: WORDS })
        assert.deepEqual([reading.estimateAudio?.(), reading.estimateOutput()], [tokens, tokens + 4])
        const twice = chatOf({ audio }, { audio })
        assert.equal(twice.estimateAudio?.(), 2 * tokens)
      })
  }

  it('is not found in other answers', () => {
    assert.equal(chatOf({ content: WORDS }).estimateAudio?.(), 0)
    assert.equal(chatCompletions.readAnswer({ choices: [null, 'x'] }).estimateAudio?.(), 0)
    assert.equal(read(chatReader(), chunk({ content: WORDS })).reader.estimatedAudio, 0)
    assert.equal(read(responses.streamReader({ json: {}, answers: 1 })).reader.estimatedAudio, 0)
  })

  it('is also found in the events of a response', () => {
    const delta = (type: string, text: string) => ({ type, output_index: 0, delta: text })
    const { reader, output } = read(
      responses.streamReader({ json: {}, answers: 1 }),
      delta('response.audio.transcript.delta', WORDS),
      delta('response.output_audio_transcript.delta', ' five'),
      delta('response.audio.delta', sound(24_000)),
      delta('response.output_text.delta', ' six'),
      delta('response.audio.delta', ''),
      delta('response.audio.done', WORDS),
    )
    assert.deepEqual(output, [true, true, true, true, false, false])
    assert.deepEqual([reader.estimatedAudio, reader.estimatedOutput], [10, 11])
    const spoken = read(
      responses.streamReader({ json: {}, answers: 1 }),
      delta('response.audio.transcript.delta', WORDS),
      delta('response.audio.delta', sound(2400)),
    )
    assert.equal(spoken.reader.estimatedAudio, 4)
  })
})

describe('images that a chat model makes', () => {
  const image = { type: 'image_url', image_url: { url: 'data:' } }

  it('are counted each, in a separate list and among the parts', () => {
    const rows: [output: object, images: number, words: number][] = [
      [{ images: [image] }, 1, 0],
      [{ images: [image, image], content: WORDS }, 2, 4],
      [{ content: [image, { type: 'image' }, { type: 'output_image' }] }, 3, 0],
      [{ content: [image, { type: 'text', text: WORDS }, 'image', null], images: [image] }, 2, 4],
      [{ content: [{ type: 'file' }, { type: 'text', text: WORDS }] }, 0, 4],
      [{ images: 'image', content: WORDS }, 0, 4],
    ]
    for (const [output, images, words] of rows) {
      const tokens = images * PER_IMAGE + words
      assert.equal(chatOf(output).estimateOutput(), tokens, JSON.stringify(output))
      const { reader } = read(chatReader(), chunk(output))
      assert.equal(reader.estimatedOutput, tokens, JSON.stringify(output))
    }
  })
})

describe('an image that a tool of a response makes', () => {
  const LOW = 272
  const PER_COARSE = 100
  const drawn = { type: 'image_generation_call', id: 'ig_1', result: 'aGk=', quality: 'low' }
  const coarse = (output_index: number, partial_image_b64: unknown = 'aGk=') => ({
    type: 'response.image_generation_call.partial_image',
    output_index,
    partial_image_b64,
    quality: 'low',
  })
  const done = (item: object, output_index = 0) => ({ type: 'response.output_item.done', output_index, item })

  it('is counted by its quality if it has a result', () => {
    const tokens = (item: object) => responses.readAnswer({ output: [item] }).estimateOutput()
    assert.equal(tokens(drawn), LOW)
    assert.equal(tokens({ ...drawn, size: '1536x1024' }), LOW * 1.5)
    assert.equal(tokens({ ...drawn, name: WORDS }), LOW + 4)
    assert.equal(tokens({ ...drawn, result: null }), 0)
    assert.equal(tokens({ ...drawn, type: 'other_call' }), 0)
  })

  it('is counted once from its first partial image on, with a small count for each partial image', () => {
    const reader = responses.streamReader({ json: {}, answers: 1 })
    const counted = [coarse(0), coarse(0), done(drawn), coarse(1), done(drawn, 1)].map((event) => {
      const { output } = reader.read({ event: undefined, data: JSON.stringify(event) })
      assert.equal(output, true)
      return reader.estimatedOutput
    })
    const first = LOW + PER_COARSE
    const both = first + PER_COARSE
    assert.deepEqual(counted, [first, both, both, both + first, both + first])
    assert.equal(reader.substance, 'output')
  })

  it('is not counted without a partial image', () => {
    const { reader, output } = read(responses.streamReader({ json: {}, answers: 1 }), coarse(0, null))
    assert.deepEqual([output, reader.estimatedOutput, reader.substance], [[false], 0, 'empty'])
  })
})

describe('reasoning that is sealed', () => {
  it('is counted by its length, or by its readable text if that is more', () => {
    const tokens = (members: object) =>
      responses.readAnswer({ output: [{ type: 'reasoning', summary: [], ...members }] }).estimateOutput()
    assert.equal(tokens({ encrypted_content: 'A'.repeat(50) }), 10)
    assert.equal(tokens({ encrypted_content: 'A'.repeat(51) }), 11)
    assert.equal(tokens({ encrypted_content: 'A'.repeat(50), summary: [{ text: WORDS }] }), 10)
    assert.equal(tokens({ encrypted_content: 'A'.repeat(5), summary: [{ text: WORDS }] }), 4)
    assert.equal(tokens({ encrypted_content: 7 }), 0)
  })

  it('is counted for a message as well, in an answer and along a stream', () => {
    const block = { type: 'redacted_thinking', data: 'A'.repeat(50) }
    const text = { type: 'text', text: WORDS, data: 'A'.repeat(50) }
    assert.equal(messages.readAnswer({ content: [block, text] }).estimateOutput(), 10 + estimateTokens(WORDS))
    const { reader, output } = read(
      messages.streamReader({ json: {}, answers: 1 }),
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_start', index: 1, content_block: text },
    )
    assert.deepEqual([output, reader.estimatedOutput], [[true, true], 14])
  })
})
