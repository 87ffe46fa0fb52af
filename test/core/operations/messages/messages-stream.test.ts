import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages } from '../../../../lib/core/operations/index.ts'

describe('an Anthropic-style message stream', () => {
  const start = {
    type: 'message_start',
    message: { usage: { input_tokens: 69, cache_read_input_tokens: 6, output_tokens: 2 } },
  }
  const block = (content_block: object) => ({ type: 'content_block_start', index: 0, content_block })
  const delta = (given: object) => ({ type: 'content_block_delta', index: 0, delta: given })
  const text = (given: string) => delta({ type: 'text_delta', text: given })
  const end = (stop_reason: string, output_tokens = 53) => ({
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens },
  })
  const stop = { type: 'message_stop' }

  function read(...events: (object | string)[]) {
    const reader = messages.streamReader({ json: { stream: true }, answers: 1 })
    const readings = events.map((event) => {
      const data = typeof event === 'string' ? event : JSON.stringify(event)
      return reader.read({ event: (event as { type?: string }).type, data })
    })
    const at = (member: 'output' | 'finished' | 'last') => readings.findIndex((reading) => reading[member])
    return { reader, readings, output: at('output'), finished: at('finished'), last: at('last') }
  }

  it('begins with the first text, not with its start, an empty block or a ping', () => {
    const events = [
      start,
      block({ type: 'text', text: '' }),
      { type: 'ping' },
      text(''),
      text('Good'),
      text(' morning'),
    ]
    const { reader, output, finished, last } = read(
      ...events,
      { type: 'content_block_stop' },
      end('end_turn'),
      stop,
    )
    assert.deepEqual([output, finished, last], [4, 7, 8])
    assert.equal(reader.substance, 'output')
    assert.equal(reader.estimatedOutput, 2)
  })

  it('begins with thinking, a tool use or its input', () => {
    const thinking = delta({ type: 'thinking_delta', thinking: 'The' })
    assert.equal(read(block({ type: 'thinking', thinking: '', signature: '' }), thinking).output, 1)
    assert.equal(read(block({ type: 'tool_use', name: 'json', input: {} })).output, 0)
    assert.equal(read(delta({ type: 'input_json_delta', partial_json: '{"a"' })).output, 0)
    assert.equal(read(delta({ type: 'input_json_delta', partial_json: '' })).output, -1)
  })

  it('takes the input from its start and the output from its end', () => {
    const { usage } = read(start, text('Hi'), end('end_turn')).reader
    assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [75, 6, 53])
  })

  it('lets the end correct the usage of the start, whose output is provisional', () => {
    const corrected = { ...end('end_turn'), usage: { input_tokens: 80, output_tokens: 0 } }
    const { usage } = read(start, corrected).reader
    assert.deepEqual([usage.inputTokens, usage.cachedInputTokens, usage.outputTokens], [86, 6, 0])
    const unreported = read(start, { ...end('end_turn'), usage: null }).reader.usage
    assert.notEqual(unreported.inputTokens, undefined)
    assert.equal(unreported.outputTokens, undefined)
  })

  it('is a refusal by its stop reason, and empty without output', () => {
    assert.equal(read(start, end('refusal'), stop).reader.substance, 'refusal')
    assert.equal(read(start, text('I'), end('refusal'), stop).reader.substance, 'refusal')
    assert.equal(
      read(start, block({ type: 'text', text: '' }), end('end_turn'), stop).reader.substance,
      'empty',
    )
  })

  it('distinguishes an error event from output', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    const { readings } = read({ type: 'error', error })
    assert.deepEqual([readings[0]?.error, readings[0]?.output], [error, false])
    assert.notEqual(read({ type: 'error' }).readings[0]?.error, undefined)
  })

  it('ignores empty data and unknown events, and throws for data that is not a JSON object', () => {
    const { output } = read(
      '',
      { type: 'news' },
      {},
      { type: 'content_block_delta' },
      { type: 'message_start' },
    )
    assert.equal(output, -1)
    for (const data of ['{', 'null', '7']) assert.throws(() => read(data), SyntaxError)
  })
})

describe('a stream of a message', () => {
  type Json = Record<string, unknown>

  const start = (usage?: unknown) => ({ type: 'message_start', message: { usage } })
  const begin = (content_block: unknown) => ({ type: 'content_block_start', index: 0, content_block })
  const delta = (members: unknown) => ({ type: 'content_block_delta', index: 0, delta: members })
  const end = (stop_reason: unknown, usage?: unknown) => ({
    type: 'message_delta',
    delta: { stop_reason },
    usage,
  })
  const stop = { type: 'message_stop' }

  /** Reads events; answers the reader and what it said of each. */
  function read(events: Json[], json: Json = {}) {
    const reader = messages.streamReader({ json, answers: 1 })
    return {
      reader,
      readings: events.map((event) => reader.read({ event: undefined, data: JSON.stringify(event) })),
    }
  }
  /** The substance of an answer with nothing in it, whole and as a stream. */
  function substanceOf(stop_reason: unknown, { usage = {} as unknown, json = {} as Json } = {}) {
    const whole = messages.readAnswer({ content: [], stop_reason, usage }, json).substance
    const streamed = read([start(), end(stop_reason, usage), stop], json).reader.substance
    assert.equal(streamed, whole)
    return whole
  }

  describe('a message without output', () => {
    it('is explained by its stop reason, its request or its usage', () => {
      assert.equal(substanceOf('end_turn'), 'empty')
      assert.equal(substanceOf('max_tokens'), 'no_output')
      assert.equal(substanceOf('refusal'), 'refusal')
      assert.equal(substanceOf('content_filter'), 'filtered')
      assert.equal(substanceOf('end_turn', { json: { max_tokens: 0 } }), 'no_output')
      const usage = { output_tokens: 5, output_tokens_details: { thinking_tokens: 5 } }
      assert.equal(substanceOf('end_turn', { usage }), 'no_output')
    })

    it('is explained only after it has ended', () => {
      const json = { max_tokens: 0 }
      assert.equal(read([start()], json).reader.substance, 'empty')
      assert.equal(read([start(), stop], json).reader.substance, 'no_output')
      assert.equal(read([start(), end(null)], json).reader.substance, 'empty')
    })

    it('is output if it has signed thinking, even without text', () => {
      const thinking = { type: 'thinking', thinking: '', signature: 's' }
      assert.equal(messages.readAnswer({ content: [thinking] }).substance, 'output')
      for (const events of [[begin(thinking)], [delta({ type: 'signature_delta', signature: 's' })]]) {
        const { reader, readings } = read(events)
        assert.deepEqual([reader.substance, readings[0]?.output], ['output', true])
      }
      for (const signature of ['', null, 7])
        assert.equal(read([delta({ type: 'signature_delta', signature })]).readings[0]?.output, false)
    })
  })

  describe('the events of a message', () => {
    it('are finished with the stop reason, or the last event', () => {
      const told = (...events: Json[]) =>
        read(events).readings.map(({ finished, last }) => [finished, last].map(Number).join(''))
      assert.deepEqual(told(start(), end(null), end('end_turn'), { type: 'ping' }, stop), [
        '00',
        '00',
        '10',
        '10',
        '11',
      ])
      assert.deepEqual(told(start(), stop), ['00', '11'])
      const reader = messages.streamReader({ json: {}, answers: 1 })
      assert.equal(reader.whole, false)
      reader.read({ event: undefined, data: JSON.stringify(end('end_turn')) })
      assert.equal(reader.whole, true)
      const { finished, last, json } = reader.read({ event: undefined, data: '' })
      assert.deepEqual([finished, last, json], [true, false, undefined])
    })

    it('are a refusal by the last given stop reason', () => {
      assert.equal(read([end('refusal'), end(null)]).reader.substance, 'refusal')
      assert.equal(read([end('refusal'), end('max_tokens')]).reader.substance, 'no_output')
    })

    it('return the one member with a text if they contain nothing else', () => {
      const member = (members: unknown) => read([delta(members)]).readings[0]?.textMember
      for (const name of ['text', 'thinking', 'partial_json'])
        assert.equal(member({ type: 'x', [name]: 'a' }), name)
      for (const other of [
        { type: 'x', signature: 's' },
        { text: 'a', index: 1 },
        { text: '' },
        null,
        undefined,
      ])
        assert.equal(member(other), undefined)
      assert.equal(read([begin({ type: 'text', text: 'a' })]).readings[0]?.textMember, undefined)
    })

    it('are counted by every piece, and one by one if only their text differs', () => {
      const { reader, readings } = read([
        begin({ type: 'text', text: 'one' }),
        begin({ type: 'tool_use', name: 'two', input: {} }),
        begin(null),
        delta({ text: 'three' }),
        delta({ thinking: ' four' }),
        delta({ partial_json: '{"a"' }),
        delta({ text: 7, thinking: null }),
        delta({ type: 'citations_delta', citation: {} }),
      ])
      assert.deepEqual(
        readings.map(({ output }) => output),
        [true, true, false, true, true, true, false, false],
      )
      const counted = reader.estimatedOutput
      assert.equal(counted, 1 + 1 + 1 + 1 + 1)
      reader.countText(' six')
      reader.countText('\\n')
      assert.deepEqual([reader.estimatedOutput, reader.unreportedOutput], [counted + 2, counted + 2])
    })

    it('report an error with or without a message', () => {
      const errorOf = (event: Json) => read([event]).readings[0]?.error
      assert.deepEqual(errorOf({ type: 'error', error: { type: 'x' } }), { type: 'x' })
      assert.deepEqual(errorOf({ type: 'error', message: 'x' }), {})
      assert.equal(errorOf({ type: 'ping', error: { type: 'x' } }), undefined)
    })
  })

  describe('the usage of a message', () => {
    const whole = (usage: Json) => messages.readAnswer({ content: [], usage }).usage
    const streamed = (...reports: Json[]) => {
      const [first = {}, ...others] = reports
      return read([start(first), ...others.map((usage) => end('end_turn', usage))]).reader.usage
    }

    it('has the service tier if it is not the default; the fast mode is one', () => {
      const rows: [usage: Json, tier: string | undefined][] = [
        [{ service_tier: 'priority' }, 'priority'],
        [{ service_tier: 'batch', speed: 'standard' }, 'batch'],
        [{ service_tier: 'standard', speed: 'fast' }, 'fast'],
        [{ service_tier: 'priority', speed: 'fast' }, 'fast'],
        [{ service_tier: 'standard' }, undefined],
        [{ speed: 'slow' }, undefined],
        [{}, undefined],
      ]
      for (const [usage, tier] of rows) {
        assert.equal(whole(usage).serviceTier, tier, JSON.stringify(usage))
        assert.equal(streamed(usage).serviceTier, tier, JSON.stringify(usage))
        assert.equal('serviceTier' in whole(usage), tier !== undefined)
        assert.equal('serviceTier' in streamed(usage, {}), tier !== undefined)
      }
      assert.equal(streamed({ service_tier: 'priority' }, { output_tokens: 1 }).serviceTier, 'priority')
      assert.equal(streamed({ service_tier: 'priority' }, { service_tier: 'batch' }).serviceTier, 'batch')
    })

    it('has the later count of each part', () => {
      const first = {
        input_tokens: 10,
        cache_read_input_tokens: 4,
        cache_creation_input_tokens: 3,
        cache_creation: { ephemeral_1h_input_tokens: 2 },
      }
      const last = {
        input_tokens: 11,
        cache_read_input_tokens: 5,
        cache_creation_input_tokens: 4,
        cache_creation: { ephemeral_1h_input_tokens: 3 },
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 6 },
        server_tool_use: { web_search_requests: 2 },
      }
      const counted = {
        inputTokens: 20,
        cachedInputTokens: 5,
        cacheWriteTokens: 4,
        cacheWrite1hTokens: 3,
        outputTokens: 9,
        reasoningTokens: 6,
        webSearches: 2,
      }
      assert.deepEqual(streamed(first, last), counted)
      assert.deepEqual(streamed(first, last, { output_tokens: 0, input_tokens: 0 }), counted)
      assert.deepEqual(streamed(last), { ...counted, outputTokens: undefined })
      const one = (members: Json) => {
        const { inputTokens, cachedInputTokens, cacheWriteTokens } = streamed(first, members)
        return [inputTokens, cachedInputTokens, cacheWriteTokens]
      }
      assert.deepEqual(one({ cache_creation_input_tokens: 1 }), [15, 4, 1])
      assert.deepEqual(one({ cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }), [17, 4, 3])
    })

    it('has no part that was never reported', () => {
      const { cacheWrite1hTokens, reasoningTokens } = whole({ cache_creation: 7, output_tokens_details: 'x' })
      assert.deepEqual([cacheWrite1hTokens, reasoningTokens], [undefined, undefined])
      assert.deepEqual([whole({}).webSearches, streamed({}, { output_tokens: 1 }).webSearches], [0, 0])
    })

    it('includes steps that are reported outside the answer', () => {
      const step = {
        type: 'compaction',
        input_tokens: 5,
        output_tokens: 2,
        cache_read_input_tokens: 3,
        output_tokens_details: { thinking_tokens: 1 },
        server_tool_use: { web_search_requests: 4 },
      }
      const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, webSearches } = whole({
        input_tokens: 10,
        output_tokens: 7,
        iterations: [step],
      })
      assert.deepEqual(
        [inputTokens, outputTokens, cachedInputTokens, reasoningTokens, webSearches],
        [18, 9, 3, 1, 4],
      )
      const later = { output_tokens: 7, iterations: [step, step] }
      assert.equal(streamed({ input_tokens: 10, iterations: [step] }, later).inputTokens, 10 + 2 * 8)
    })
  })
})
