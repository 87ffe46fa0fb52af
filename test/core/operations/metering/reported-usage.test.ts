import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  chatCompletions,
  messages,
  type ReportedUsage,
  responses,
  type StreamReader,
} from '../../../../lib/core/operations/index.ts'

describe('the usage that a line reports', () => {
  const chat = (usage: unknown) => chatCompletions.readAnswer({ choices: [], usage }).usage
  const message = (usage: unknown) => messages.readAnswer({ content: [], usage }).usage

  /** Values that are no count: a charge cannot rest on them. */
  const NO_COUNTS = [-1, -0.5, 12.5, 1e300, 2 ** 53, Number.NaN, Infinity, '12', '', null, true, [7], {}]

  describe('a reported count', () => {
    it('is an exact whole number from 0; anything else counts as not reported', () => {
      for (const odd of NO_COUNTS) {
        const details = { cached_tokens: odd, cache_write_tokens: odd }
        const ofChat = chat({ prompt_tokens: odd, completion_tokens: odd, prompt_tokens_details: details })
        assert.deepEqual(new Set(Object.values(ofChat)), new Set([undefined]), String(odd))
        const ofMessage = message({
          input_tokens: odd,
          output_tokens: odd,
          cache_read_input_tokens: odd,
          cache_creation_input_tokens: odd,
          server_tool_use: { web_search_requests: odd },
        })
        const { webSearches, ...tokens } = ofMessage
        assert.deepEqual(new Set(Object.values(tokens)), new Set([undefined]), String(odd))
        assert.equal(webSearches, 0)
      }
      assert.equal(chat({ prompt_tokens: 0 }).inputTokens, 0)
      assert.equal(chat({ completion_tokens: 2 ** 53 - 1 }).outputTokens, 2 ** 53 - 1)
    })
  })

  describe('reported reasoning', () => {
    const usage = (completion: unknown, reasoning: unknown, total?: unknown) =>
      chat({
        prompt_tokens: 32,
        completion_tokens: completion,
        total_tokens: total,
        completion_tokens_details: { reasoning_tokens: reasoning },
      }).outputTokens

    it('is part of the output if the total confirms that or is missing', () => {
      assert.equal(usage(78, 64, 110), 78)
      assert.equal(usage(78, 64), 78)
      assert.equal(usage(78, 0, 110), 78)
      assert.equal(usage(78, 64, '174'), 78)
    })

    it('is added to the output if the total, or a part larger than the whole, shows that it is separate', () => {
      assert.equal(usage(9, 310, 351), 319)
      assert.equal(usage(1499, 200, 1731), 1699)
      assert.equal(usage(9, 310), 319)
      assert.equal(usage(0, 60, 92), 60)
    })

    it('may be all of the output', () => {
      assert.equal(usage(64, 64), 64)
      assert.equal(usage(64, 64, 96), 64)
    })

    it('adds nothing if it is not a count, or if the total has another explanation in the details', () => {
      for (const odd of NO_COUNTS) assert.equal(usage(78, odd, 9999), 78)
      const counts = { prompt_tokens: 32, completion_tokens: 78, total_tokens: 9999 }
      assert.equal(chat({ ...counts, prompt_tokens_details: { cached_tokens: 9 } }).outputTokens, 78)
    })
  })

  describe('the usage of a response', () => {
    const of = (usage: unknown) => responses.readAnswer({ object: 'response', output: [], usage }).usage
    const output = (output_tokens: unknown, reasoning_tokens: unknown) =>
      of({ output_tokens, output_tokens_details: { reasoning_tokens } }).outputTokens

    it('has the input with its cached part, and the output with its reasoning', () => {
      const input_tokens_details = { cached_tokens: 20, cache_write_tokens: 5 }
      assert.deepEqual(of({ input_tokens: 30, input_tokens_details, output_tokens: 9 }), {
        inputTokens: 30,
        cachedInputTokens: 20,
        cacheWriteTokens: 5,
        audioInputTokens: undefined,
        outputTokens: 9,
        audioOutputTokens: undefined,
        reasoningTokens: undefined,
        webSearches: 0,
      })
      assert.deepEqual([output(9, 4), output(9, 9), output(9, 0), output(9, undefined)], [9, 9, 9, 9])
    })

    it('has reasoning added if the part is larger than the whole', () => {
      assert.deepEqual([output(9, 10), output(0, 60)], [19, 60])
    })

    it('is unknown if it is not a count, or is missing', () => {
      for (const odd of NO_COUNTS)
        assert.deepEqual([output(odd, 4), output(9, odd)], [undefined, 9], String(odd))
      for (const none of [undefined, null, 7, 'usage']) assert.deepEqual(of(none), { webSearches: 0 })
    })
  })

  describe('usage reported along a chat stream', () => {
    const event = (content: string, usage?: object | null, finish: string | null = null) => ({
      choices: [{ index: 0, delta: content ? { content } : {}, finish_reason: finish }],
      usage,
    })
    const counts = (prompt: number, completion: number, cached?: number) => ({
      prompt_tokens: prompt,
      completion_tokens: completion,
      ...(cached !== undefined && { prompt_tokens_details: { cached_tokens: cached } }),
    })
    const read = (...events: object[]) =>
      readAll(chatCompletions.streamReader({ json: { stream: true }, answers: 1 }), events)

    it('accumulates from chunk to chunk, and the output after the last report is known', () => {
      const reader = read(
        event('Once', counts(9, 1)),
        event(' upon', counts(9, 2)),
        event(' a'),
        event(' time'),
      )
      assert.deepEqual([reader.usage.outputTokens, reader.unreportedOutput], [2, 2])
    })

    it('is not reset by later zeros, nulls or empty reports', () => {
      const reader = read(
        event('Once', counts(9, 1, 4)),
        event('', null, 'stop'),
        { choices: [], usage: {} },
        { choices: [], usage: counts(0, 0, 0) },
      )
      assert.deepEqual(
        [reader.usage.inputTokens, reader.usage.cachedInputTokens, reader.usage.outputTokens],
        [9, 4, 1],
      )
    })

    it('is zero if nothing else was reported', () => {
      const { usage } = read(event('Once'), event('', counts(0, 3), 'stop'))
      assert.deepEqual([usage.inputTokens, usage.outputTokens], [0, 3])
    })

    it('is corrected by a later report, together with the cached part of its input', () => {
      const { usage } = read(event('Once', counts(9, 1, 4)), event('', counts(7, 2), 'stop'))
      assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [7, undefined, 2])
    })

    it('is not zero before the finish reason, but may be with it', () => {
      const begun = read(event('Once', counts(0, 0)), event(' upon', counts(9, 0)))
      assert.deepEqual([begun.usage.inputTokens, begun.usage.outputTokens], [9, undefined])
      assert.equal(begun.unreportedOutput, 2)
      const zeros = read(event('Once', counts(0, 0)))
      assert.deepEqual([zeros.usage.inputTokens, zeros.usage.cachedInputTokens], [undefined, undefined])
      const over = read(event('Once'), event('', counts(9, 0), 'stop'))
      assert.deepEqual([over.usage.outputTokens, over.unreportedOutput], [0, 0])
    })

    it('may come before the finish reason', () => {
      const reader = read(event('Once'), { choices: [], usage: counts(9, 5) }, event('', undefined, 'stop'))
      assert.deepEqual([reader.usage.outputTokens, reader.unreportedOutput, reader.whole], [5, 0, true])
    })
  })

  describe('usage reported along a message stream', () => {
    const start = (usage?: object | null) => ({ type: 'message_start', message: { usage } })
    const text = (given: string) => ({
      type: 'content_block_delta',
      delta: { type: 'text_delta', text: given },
    })
    const delta = (usage?: object | null, stop_reason: string | null = 'end_turn') => ({
      type: 'message_delta',
      delta: { stop_reason },
      usage,
    })
    const read = (...events: object[]) =>
      readAll(messages.streamReader({ json: { stream: true }, answers: 1 }), events)
    const START = { input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10 }

    it('keeps the cached part of the input when the end repeats only the rest', () => {
      const { usage } = read(
        start({ ...START, cache_creation: { ephemeral_1h_input_tokens: 4 }, output_tokens: 1 }),
        delta({ input_tokens: 30, output_tokens: 9 }),
      )
      assert.deepEqual(usage, {
        inputTokens: 100,
        cachedInputTokens: 60,
        cacheWriteTokens: 10,
        cacheWrite1hTokens: 4,
        outputTokens: 9,
        reasoningTokens: undefined,
        webSearches: 0,
      })
    })

    it('keeps the input if the end reports zero, or nothing', () => {
      const zeros = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
      for (const end of [
        { ...zeros, output_tokens: 9 },
        { input_tokens: 0, output_tokens: 9 },
      ]) {
        assert.equal(read(start(START), delta(end)).usage.inputTokens, 100)
      }
      for (const end of [null, undefined, {}]) {
        const { usage } = read(start(START), delta(end))
        assert.deepEqual([usage.inputTokens, usage.outputTokens], [100, undefined])
      }
    })

    it('is unknown while a stream has only zeros, and zero if its end reports no output either', () => {
      const zeros = { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 }
      assert.equal(read(start(zeros)).usage.inputTokens, undefined)
      assert.equal(read(start(zeros), delta({ output_tokens: 9 })).usage.inputTokens, undefined)
      assert.equal(read(start(zeros), delta({ output_tokens: 0 })).usage.inputTokens, 0)
    })

    it('may all come at the end, behind zeros at the start', () => {
      const { usage } = read(
        start({ input_tokens: 0, output_tokens: 0 }),
        delta({ ...START, output_tokens: 9 }),
      )
      assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [100, 60, 9])
    })

    it('counts a prompt that was cached whole', () => {
      const whole = { input_tokens: 0, cache_read_input_tokens: 90, output_tokens: 9 }
      assert.equal(read(start({ input_tokens: 90 }), delta(whole)).usage.inputTokens, 90)
    })

    it('corrects the tokens read from the cache, even if the end reports no other input', () => {
      const { usage } = read(start(START), delta({ cache_read_input_tokens: 65, output_tokens: 9 }))
      assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.cacheWriteTokens], [105, 65, 10])
    })

    it('takes the output only from the end: it is provisional before that', () => {
      const begun = read(start({ ...START, output_tokens: 4 }), text('Once'), text(' upon'))
      assert.deepEqual([begun.usage.outputTokens, begun.unreportedOutput], [undefined, 2])
      const over = read(
        start(START),
        text('Once'),
        delta({ output_tokens: 0 }, null),
        delta({ output_tokens: 7 }),
      )
      assert.deepEqual([over.usage.outputTokens, over.unreportedOutput], [7, 0])
      const uncounted = read(start(START), text('Once'), delta({ output_tokens: 0 }, null), delta(null))
      assert.deepEqual([uncounted.usage.outputTokens, uncounted.unreportedOutput], [undefined, 1])
      const none = read(start(START), text('Once'), delta({ output_tokens: 0 }))
      assert.deepEqual([none.usage.outputTokens, none.unreportedOutput], [0, 0])
    })
  })

  function readAll(reader: StreamReader, events: readonly object[]): StreamReader {
    for (const event of events) reader.read({ event: undefined, data: JSON.stringify(event) })
    return reader
  }
})

describe('usage in other places', () => {
  const chat = (usage: unknown) => chatCompletions.readAnswer({ choices: [], usage }).usage

  function readAll(reader: StreamReader, events: readonly object[]): StreamReader {
    for (const event of events) reader.read({ event: undefined, data: JSON.stringify(event) })
    return reader
  }

  const usage = { prompt_tokens: 1900, completion_tokens: 1300, total_tokens: 3200, cached_tokens: 1500 }
  const counted = ({ inputTokens, cachedInputTokens, outputTokens }: ReportedUsage) => [
    inputTokens,
    cachedInputTokens,
    outputTokens,
  ]

  it('is read from its choice, in a stream and in a whole answer', () => {
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

  it('has output only in its total if the reasoning of a model is not counted', () => {
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
      'no input to deduct it from',
    )
  })

  it('includes the images that a tool of a response has made', () => {
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
