import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../../lib/core/operations/index.ts'
import { messageItem, responseBody, responseIn, USAGE } from '../../../support/responses-upstream.ts'

const read = (output: readonly object[], extra: Record<string, unknown> = {}) =>
  responses.readAnswer(responseBody(output, extra))
const reasoning = (extra: object = {}) => ({ id: 'rs_1', type: 'reasoning', summary: [], ...extra })
const refusal = { ...messageItem(''), content: [{ type: 'refusal', refusal: 'I will not.' }] }
const incomplete = (reason: string) => ({ status: 'incomplete', incomplete_details: { reason } })

describe('a whole response', () => {
  for (const [name, output, extra, substance] of [
    ['text', [messageItem('Hello')], {}, 'output'],
    ['text behind reasoning', [reasoning(), messageItem('Hello')], {}, 'output'],
    ['the call of a function', [{ type: 'function_call', name: 'f', arguments: '{}' }], {}, 'output'],
    ['an image', [{ type: 'image_generation_call', result: 'aGk=' }], {}, 'output'],
    [
      'a summary of reasoning',
      [reasoning({ summary: [{ type: 'summary_text', text: 'Hm' }] })],
      {},
      'output',
    ],
    [
      'reasoning in the open',
      [reasoning({ content: [{ type: 'reasoning_text', text: 'Hm' }] })],
      {},
      'output',
    ],
    ['sealed reasoning', [reasoning({ encrypted_content: 'gAAA' })], {}, 'output'],
    ['a refusal', [refusal], {}, 'refusal'],
    ['text cut by its length', [messageItem('Hel')], incomplete('max_output_tokens'), 'output'],
    ['text cut by moderation', [messageItem('Hel')], incomplete('content_filter'), 'output'],
    ['nothing, by moderation', [], incomplete('content_filter'), 'filtered'],
    ['nothing, by its length', [reasoning()], incomplete('max_output_tokens'), 'no_output'],
    ['nothing at all', [], {}, 'empty'],
    ['nothing but reasoning tokens', [], { usage: USAGE }, 'no_output'],
    ['an empty message', [messageItem('')], { usage: null }, 'empty'],
    ['an item of unknown form', [null, 'x', 7] as unknown as object[], { usage: null }, 'empty'],
  ] as const) {
    it(`${name}: ${substance}`, () => assert.equal(read(output, extra).substance, substance))
  }

  it('has its usage, the cached input and the reasoning in it', () => {
    assert.deepEqual(read([messageItem('Hello')]).usage, {
      inputTokens: 7,
      cachedInputTokens: 2,
      cacheWriteTokens: undefined,
      audioInputTokens: undefined,
      outputTokens: 3,
      audioOutputTokens: undefined,
      reasoningTokens: 1,
      webSearches: 0,
    })
    const written = { ...USAGE, input_tokens_details: { cached_tokens: 0, cache_write_tokens: 5 } }
    assert.equal(read([messageItem('Hello')], { usage: written }).usage.cacheWriteTokens, 5)
    const beside = { ...USAGE, output_tokens_details: { reasoning_tokens: 9 } }
    assert.equal(read([messageItem('Hello')], { usage: beside }).usage.outputTokens, 12)
  })

  it('is estimated if the report is not plausible', () => {
    for (const usage of [null, undefined, {}, { output_tokens: '3' }, { output_tokens: -1 }]) {
      const reading = read([messageItem('Hello there')], { usage })
      assert.equal(reading.usage.outputTokens, undefined)
      assert.equal(reading.estimateOutput(), 2)
    }
  })

  it('has an error if it failed, with or without a message', () => {
    const error = { code: 'server_error', message: 'boom' }
    assert.equal(read([], { status: 'failed', error }).error, error)
    assert.ok(read([], { status: 'failed', error: null }).error)
    assert.ok(read([], { status: 'cancelled' }).error)
    assert.equal(read([messageItem('Hello')]).error, undefined)
  })

  it('has its id if it is stored', () => {
    assert.equal(responseIn(read([]).kept), 'resp_1')
    for (const extra of [{ store: false }, { id: '' }, { id: 7 }, { id: undefined }])
      assert.equal(responseIn(read([], extra).kept), undefined)
    assert.equal(
      responseIn(read([], { store: undefined }).kept),
      'resp_1',
      'an upstream that says nothing keeps it',
    )
  })

  it('is invalid without output', () => {
    for (const json of [null, 'text', [], {}, { output: 'text' }, { choices: [] }])
      assert.throws(() => responses.readAnswer(json), SyntaxError)
  })
})
