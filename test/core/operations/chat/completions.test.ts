import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { completions } from '../../../../lib/core/operations/chat/completions.ts'
import { completionAnswer } from '../../../support/endpoints.ts'

const chunk = (
  index: number,
  text: string,
  finish_reason: string | null = null,
  logprobs: object | null = null,
) =>
  JSON.stringify(completionAnswer('', { choices: [{ text, index, logprobs, finish_reason }], usage: null }))
const readerOf = (json: object) =>
  completions.streamReader({ json: { model: 'm', prompt: 'a', stream: true, ...json }, answers: 1 })
const event = (data: string) => ({ event: undefined, data })

describe('a stream of texts', () => {
  it('is finished when every text of every prompt is finished', () => {
    const reader = readerOf({ prompt: ['a', 'b'], n: 2, best_of: 2 })
    for (let index = 0; index < 4; index++) {
      assert.equal(reader.read(event(chunk(index, 'word'))).output, true)
      assert.equal(reader.read(event(chunk(index, '', 'stop'))).finished, index === 3)
    }
    assert.equal(reader.read(event('[DONE]')).last, true)
    assert.deepEqual([reader.whole, reader.substance, reader.estimatedOutput], [true, 'output', 4])
  })

  it('has one text for each prompt if no number is requested', () => {
    const reader = readerOf({ prompt: ['a', 'b'] })
    const finished = [0, 1].map((index) => reader.read(event(chunk(index, '', 'stop'))).finished)
    assert.deepEqual(finished, [false, true])
  })

  it('distinguishes events that carry a text alone from those that carry more', () => {
    const reader = readerOf({})
    assert.equal(reader.read(event(chunk(0, 'word'))).textMember, 'text')
    for (const other of [chunk(0, ''), chunk(0, 'end', 'stop'), chunk(0, 'word', null, { tokens: ['word'] })])
      assert.equal(reader.read(event(other)).textMember, undefined)
  })

  it('hides the usage chunk from a caller that did not ask for it', () => {
    const usage = JSON.stringify(completionAnswer('', { choices: [] }))
    for (const [json, relay] of [
      [{}, false],
      [{ stream_options: { include_usage: false } }, false],
      [{ stream_options: { include_usage: true } }, true],
    ] as const) {
      const reader = readerOf(json)
      assert.equal(reader.read(event(usage)).relay, relay)
      assert.deepEqual([reader.usage.inputTokens, reader.usage.outputTokens], [7, 3])
    }
  })
})

describe('a whole answer of texts', () => {
  const substanceOf = (choices: readonly object[]) =>
    completions.readAnswer(completionAnswer('', { choices })).substance

  it('has output if one of them is not empty', () => {
    assert.equal(substanceOf([{ text: '' }, { text: 'word' }]), 'output')
    assert.equal(substanceOf([{ text: '', reasoning_content: 'thinks' }]), 'output')
  })

  it('is empty, or filtered, if all are empty', () => {
    assert.equal(substanceOf([{ text: '', finish_reason: 'stop' }]), 'empty')
    assert.equal(substanceOf([]), 'empty')
    assert.equal(substanceOf([{ text: '', finish_reason: 'content_filter' }]), 'filtered')
  })

  it('is invalid without choices', () => {
    assert.throws(() => completions.readAnswer({ text: 'word' }), SyntaxError)
  })
})
