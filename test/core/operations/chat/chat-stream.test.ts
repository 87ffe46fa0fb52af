import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions } from '../../../../lib/core/operations/index.ts'
import { chunk, readAll } from './read-chunks.ts'

describe('a chat completion stream', () => {
  const chunk = (delta: unknown, finish_reason: string | null = null, extra: object = {}) => ({
    id: 'chatcmpl-7',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...extra,
  })
  const USAGE = { choices: [], usage: { prompt_tokens: 15, completion_tokens: 78 } }

  function read(events: readonly (object | string)[], { answers = 1, include_usage = false } = {}) {
    const json = { stream: true, stream_options: { include_usage } }
    const reader = chatCompletions.streamReader({ json, answers })
    const readings = events.map((event) =>
      reader.read({ event: undefined, data: typeof event === 'string' ? event : JSON.stringify(event) }),
    )
    const at = (member: 'output' | 'finished' | 'last') => readings.findIndex((reading) => reading[member])
    return { reader, readings, output: at('output'), finished: at('finished'), last: at('last') }
  }

  it('begins with the first text, not with a role, an empty text or a filter report', () => {
    const { reader, output, finished, last } = read([
      { choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      chunk({ role: 'assistant', content: '', refusal: null }),
      chunk({ content: 'Good' }),
      chunk({ content: ' morning' }),
      chunk({}, 'stop'),
      '[DONE]',
    ])
    assert.deepEqual([output, finished, last], [2, 4, 5])
    assert.equal(reader.substance, 'output')
    assert.equal(reader.estimatedOutput, 2)
  })

  for (const [what, delta] of Object.entries({
    'reasoning, under either name': { content: null, reasoning_content: 'We' },
    'reasoning by its short name': { reasoning: 'We' },
    'a tool call': { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '' } }] },
    'a refusal': { refusal: 'I' },
    audio: { audio: { data: 'UklGRg==' } },
  })) {
    it(`begins with ${what}`, () => {
      const empty = { role: 'assistant', content: null, reasoning_content: '' }
      assert.equal(read([chunk(empty), chunk(delta)]).output, 1)
    })
  }

  it('is finished when every requested choice has its finish reason', () => {
    const of = (index: number, finish_reason: string | null) => ({
      choices: [{ index, delta: {}, finish_reason }],
    })
    const events = [of(0, null), of(1, 'stop'), of(1, 'stop'), of(0, 'length')]
    assert.equal(read(events, { answers: 2 }).finished, 3)
    assert.equal(read(events, { answers: 1 }).finished, 1)
  })

  it('hides the usage chunk from a caller that did not ask for it, and reads it in both cases', () => {
    for (const include_usage of [false, true]) {
      const { reader, readings } = read([chunk({ content: 'Hi' }), chunk({}, 'stop'), USAGE], {
        include_usage,
      })
      assert.deepEqual(
        readings.map(({ relay }) => relay),
        [true, true, include_usage],
      )
      assert.deepEqual([reader.usage.inputTokens, reader.usage.outputTokens], [15, 78])
    }
  })

  it('relays a chunk with choices beside its usage, and uses the last report', () => {
    const running = (tokens: number) => ({ usage: { prompt_tokens: 9, completion_tokens: tokens } })
    const { reader, readings } = read([
      chunk({ content: 'a' }, null, running(1)),
      chunk({}, 'stop', running(2)),
    ])
    assert.deepEqual(
      readings.map(({ relay }) => relay),
      [true, true],
    )
    assert.equal(reader.usage.outputTokens, 2)
    assert.equal(read([chunk({ content: 'a' }, null, { usage: null })]).reader.usage.outputTokens, undefined)
  })

  it('is empty, filtered or a refusal, depending on its finish reason and its text', () => {
    const substance = (...events: object[]) => read(events).reader.substance
    assert.equal(substance(chunk({ role: 'assistant' }), chunk({}, 'stop')), 'empty')
    assert.equal(substance(chunk({}, 'content_filter')), 'filtered')
    assert.equal(substance(chunk({ content: 'Once' }), chunk({}, 'content_filter')), 'output')
    assert.equal(substance(chunk({ refusal: 'I cannot' }), chunk({}, 'stop')), 'refusal')
  })

  it('distinguishes an error event from output', () => {
    const error = { message: 'quota', code: 'insufficient_quota' }
    const { readings } = read([{ error }])
    assert.deepEqual([readings[0]?.error, readings[0]?.output], [error, false])
  })

  it('ignores empty data and unknown choices, and throws for data that is not a JSON object', () => {
    const { output } = read(['', { choices: [null] }, { choices: {} }, { choices: [{ delta: null }] }, {}])
    assert.equal(output, -1)
    for (const data of ['{', 'null', '7', '"x"']) assert.throws(() => read([data]), SyntaxError)
  })
})

type Json = Record<string, unknown>

describe('the chunks of a chat', () => {
  const text = chunk({ delta: { content: 'Hi' } })
  const over = (finish_reason: string, index = 0) => ({ choices: [{ index, delta: {}, finish_reason }] })

  it('end when each started choice is finished, or with the last event', () => {
    const whole = (...events: (Json | string)[]) => readAll(events, { answers: 3 }).reader.whole
    const other = { choices: [{ index: 1, delta: { content: 'Ho' } }] }
    assert.deepEqual(
      [whole(), whole(text), whole(text, over('stop')), whole(text, other, over('stop'))],
      [false, false, true, false],
    )
    assert.equal(whole(text, other, over('stop'), over('length', 1)), true)
    assert.equal(whole({ choices: [{ delta: {}, finish_reason: 'stop' }] }), true)
    const placeless = { choices: [{ delta: {}, finish_reason: 'stop' }] }
    assert.equal(whole(text, other, placeless, over('stop', 1)), true)
    for (const end of ['[DONE]', ' [DONE]\n']) assert.equal(whole(text, end), true)
    const { readings } = readAll(['[DONE]', text])
    assert.deepEqual(
      readings.map(({ last, json }) => [last, json]),
      [
        [true, undefined],
        [false, text],
      ],
    )
  })

  it('are judged by the last finish reason, the request and the usage if they have no text', () => {
    const substance = (events: Json[], json: Json = {}) => readAll(events, { json }).reader.substance
    assert.equal(substance([over('length')]), 'no_output')
    assert.equal(substance([over('length'), over('stop')]), 'empty')
    assert.equal(substance([over('stop')], { stop: ['x'] }), 'no_output')
    assert.equal(substance([chunk({ delta: {}, finish_reason: 'stop', stop_reason: 'x' })]), 'no_output')
    const usage = { completion_tokens: 5, reasoning_tokens: 5 }
    assert.equal(substance([over('stop'), { choices: [], usage }]), 'no_output')
    assert.equal(substance([{ choices: [], usage }]), 'empty')
    assert.equal(substance([chunk({ delta: { refusal: 'No' } }), text]), 'refusal')
    assert.equal(substance([over('content_filter'), over('length')]), 'filtered')
  })

  it('are an error by their name, their type, a member or a choice', () => {
    const errorOf = (event: Json, name?: string) => {
      const { reader, readings } = readAll([event], { name })
      assert.equal(readings[0]?.output, false)
      assert.equal(reader.substance, 'empty')
      return readings[0]?.error
    }
    const error = { code: 'x' }
    assert.deepEqual(errorOf({ error }), error)
    assert.deepEqual(errorOf({ object: 'error', code: 'x' }), { object: 'error', code: 'x' })
    assert.deepEqual(errorOf({ code: 'x' }, 'error'), { code: 'x' })
    assert.deepEqual(errorOf({ error, choices: [] }, 'error'), error)
    assert.deepEqual(errorOf(chunk({ delta: { content: 'Hi' }, finish_reason: 'error', error })), error)
    assert.deepEqual(errorOf(chunk({ finish_reason: 'error' })), {
      message: 'the answer stopped for the reason error',
    })
    assert.equal(readAll([{ ...text, error: null }], { name: 'message' }).readings[0]?.error, undefined)
  })

  it('return the one member with a text if they contain nothing else', () => {
    const member = (event: Json) => readAll([event]).readings[0]?.textMember
    assert.equal(member(text), 'content')
    assert.equal(member(chunk({ delta: { reasoning: 'a' }, finish_reason: null })), 'reasoning')
    assert.equal(member(chunk({ delta: { reasoning_content: 'a' } }, { usage: null })), 'reasoning_content')
    const others = [
      chunk({ delta: { content: 'a' }, finish_reason: 'stop' }),
      chunk({ delta: { refusal: 'a' } }),
      chunk({ delta: null }),
      chunk({}),
      chunk({ delta: { content: 'a' } }, { usage: {} }),
      { choices: [{ delta: { content: 'a' } }, { index: 1, delta: { content: 'b' } }] },
      { choices: [null] },
      { choices: [] },
    ]
    for (const other of others) assert.equal(member(other), undefined, JSON.stringify(other))
  })

  it('are counted one by one if only their text differs', () => {
    const { reader } = readAll([text])
    reader.countText(' there')
    reader.countText('\\n')
    assert.deepEqual([reader.estimatedOutput, reader.unreportedOutput], [3, 3])
  })

  it('contain no empty usage that only the gateway asked for', () => {
    const shown = (events: string, include_usage = false) =>
      readAll([], { json: { stream_options: { include_usage } } }).reader.shown?.(events)
    const rows: [events: string, seen: string][] = [
      ['data: {"id":"c","usage":null}\n\n', 'data: {"id":"c"}\n\n'],
      ['data: {"usage":null,"id":"c"}\n\n', 'data: {"id":"c"}\n\n'],
      ['data: { "id":"c" , "usage" : null , "a":1}', 'data: { "id":"c"  , "a":1}'],
      ['data: {"usage":null,"a":1}\n\ndata: {"b":2,"usage":null}', 'data: {"a":1}\n\ndata: {"b":2}'],
      ['data: {"id":"c","usage":{"a":1}}', 'data: {"id":"c","usage":{"a":1}}'],
      ['data: {"content":",\\"usage\\":null,"}', 'data: {"content":",\\"usage\\":null,"}'],
      ['data: {"id":"c","usage":nullable}', 'data: {"id":"c","usage":nullable}'],
      ['data: {"id":"c"}', 'data: {"id":"c"}'],
    ]
    for (const [events, seen] of rows) {
      assert.equal(shown(events), seen)
      assert.equal(shown(events, true), events)
    }
  })
})

describe('usage that is reported along a chat', () => {
  const details = (prompt: Json, completion: Json) => ({
    prompt_tokens: 10,
    completion_tokens: 5,
    prompt_tokens_details: prompt,
    completion_tokens_details: completion,
    server_tool_use: { web_search_requests: 2 },
  })
  const first = details(
    { cached_tokens: 4, cache_write_tokens: 3, audio_tokens: 2 },
    { reasoning_tokens: 1, audio_tokens: 2 },
  )
  const reported = {
    inputTokens: 10,
    cachedInputTokens: 4,
    cacheWriteTokens: 3,
    audioInputTokens: 2,
    outputTokens: 5,
    audioOutputTokens: 2,
    reasoningTokens: 1,
    webSearches: 2,
  }
  const usageOf = (...reports: Json[]) =>
    readAll([
      ...reports.map((usage) => chunk({ delta: { content: 'a' } }, { usage })),
      chunk({ delta: {}, finish_reason: 'stop' }),
    ]).reader.usage

  it('has all its parts, which an empty report does not change', () => {
    assert.deepEqual(usageOf(first), reported)
    assert.deepEqual(usageOf(first, {}, { prompt_tokens: 0, completion_tokens: 0 }), reported)
  })

  it('is that of the last report, separately for input and output', () => {
    const input = { inputTokens: 20, cachedInputTokens: undefined, cacheWriteTokens: undefined }
    assert.deepEqual(usageOf(first, { prompt_tokens: 20 }), {
      ...reported,
      ...input,
      audioInputTokens: undefined,
    })
    assert.deepEqual(usageOf(first, { completion_tokens: 9, server_tool_use: { web_search_requests: 4 } }), {
      ...reported,
      outputTokens: 9,
      audioOutputTokens: undefined,
      reasoningTokens: undefined,
      webSearches: 4,
    })
  })

  it('covers only the output before it', () => {
    const zero = { prompt_tokens: 9, completion_tokens: 0 }
    const { reader } = readAll([
      chunk({ delta: { content: 'a' } }, { usage: { completion_tokens: 5 } }),
      chunk({ delta: { content: 'b' } }),
      chunk({ delta: {}, finish_reason: 'stop' }, { usage: zero }),
    ])
    assert.deepEqual([reader.usage.outputTokens, reader.unreportedOutput, reader.estimatedOutput], [5, 1, 2])
  })
})
