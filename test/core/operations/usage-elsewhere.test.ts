import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  chatCompletions,
  type ReportedUsage,
  responses,
  type StreamReader,
} from '../../../lib/core/operations/index.ts'

const chat = (usage: unknown) => chatCompletions.readAnswer({ choices: [], usage }).usage

describe('usage in other places', () => {
  const usage = { prompt_tokens: 1900, completion_tokens: 1300, total_tokens: 3200, cached_tokens: 1500 }
  const counted = ({ inputTokens, cachedInputTokens, outputTokens }: ReportedUsage) => [
    inputTokens,
    cachedInputTokens,
    outputTokens,
  ]

  it('is read from the choice that holds it, in a stream and in a whole answer', () => {
    const choices = [{ index: 0, delta: {}, finish_reason: 'stop', usage }]
    const events = [{ choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] }, { choices }]
    const reader = readAll(chatCompletions.streamReader({ json: { stream: true }, answers: 1 }), events)
    assert.deepEqual([...counted(reader.usage), reader.unreportedOutput], [1900, 1500, 1300, 0])
    assert.deepEqual(counted(chatCompletions.readAnswer({ choices }).usage), [1900, 1500, 1300])
    const other = chatCompletions.readAnswer({ choices, usage: { prompt_tokens: 1, completion_tokens: 2 } })
    assert.deepEqual(counted(other.usage), [1, undefined, 2])
  })

  it('has the cached part of its input beside the other counts', () => {
    assert.deepEqual(counted(chat(usage)), [1900, 1500, 1300])
    assert.equal(chat({ ...usage, prompt_tokens_details: { cached_tokens: 7 } }).cachedInputTokens, 7)
  })

  it('has what was written to a cache under either name', () => {
    const written = (details: object) => chat({ ...usage, prompt_tokens_details: details }).cacheWriteTokens
    const qwen = { cache_creation_input_tokens: 1889, cache_type: 'ephemeral', cached_tokens: 0 }
    assert.equal(written(qwen), 1889)
    assert.equal(written({ ...qwen, cache_write_tokens: 7 }), 7)
  })

  it('has output in its total only, where a model thinks and the thoughts have no count', () => {
    const google = { completion_tokens: 3, prompt_tokens: 9, total_tokens: 105 }
    assert.deepEqual(counted(chat(google)), [9, undefined, 96])
    const choices = [{ index: 0, delta: { content: ', ' } }]
    const begun = {
      choices: [{ index: 0, delta: { content: '1' } }],
      usage: { ...google, total_tokens: 103 },
    }
    const reader = chatCompletions.streamReader({ json: { stream: true }, answers: 1 })
    assert.deepEqual(counted(readAll(reader, [begun, { choices, usage: google }]).usage), [9, undefined, 96])
    assert.equal(chat({ ...google, total_tokens: 12 }).outputTokens, 3)
    assert.equal(chat({ ...google, total_tokens: 0 }).outputTokens, 3, 'a total that is too small')
    assert.equal(
      chat({ completion_tokens: 3, total_tokens: 105 }).outputTokens,
      3,
      'no input to tell it from',
    )
  })

  it('counts the images that a tool of a response has made beside the response', () => {
    const drawn = (imageGen: unknown) => ({
      status: 'completed',
      output: [{ id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'aGk=' }],
      usage: { input_tokens: 1820, output_tokens: 210, total_tokens: 2030 },
      tool_usage: { image_gen: imageGen, web_search: { num_requests: 0 } },
    })
    const response = drawn({ input_tokens: 40, output_tokens: 7024, total_tokens: 7064 })
    assert.deepEqual(counted(responses.readAnswer(response).usage), [1860, undefined, 7234])
    const reader = responses.streamReader({ json: {}, answers: 1 })
    const events = [{ type: 'response.completed', response }]
    assert.deepEqual(counted(readAll(reader, events).usage), [1860, undefined, 7234])
    for (const none of [undefined, null, {}, { output_tokens: '7024' }])
      assert.deepEqual(counted(responses.readAnswer(drawn(none)).usage), [1820, undefined, 210])
    const unreported = responses.readAnswer({ ...response, usage: null })
    assert.deepEqual(unreported.usage, { webSearches: 0 }, 'images are estimated then')
    assert.ok(unreported.estimateOutput() > 1000)
  })
})

function readAll(reader: StreamReader, events: readonly object[]): StreamReader {
  for (const event of events) reader.read({ event: undefined, data: JSON.stringify(event) })
  return reader
}
