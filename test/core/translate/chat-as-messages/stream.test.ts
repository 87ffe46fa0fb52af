import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isJsonObject } from '../../../../lib/core/json/index.ts'
import { chatCompletions } from '../../../../lib/core/operations/index.ts'
import { type StreamTranslator, translationOf } from '../../../../lib/core/translate/index.ts'
import { thinkingBlocks } from '../../../../lib/core/translate/reasoning.ts'
import { derivedId } from '../../../../lib/core/translate/tool-ids.ts'
import {
  completionOf,
  eventsOf,
  inputOf,
  jsonText,
  relayTranslated,
  testRelayPaths,
  textPieces,
  toolCall,
  wellFormed,
} from '../support/streams.ts'

describe('events of an Anthropic-style line', () => {
  const block = fc.oneof(
    textPieces.map((pieces) => ({ type: 'text' as const, pieces: wellFormed(pieces) })),
    fc.tuple(textPieces, fc.base64String({ minLength: 1 })).map(([pieces, signature]) => ({
      type: 'thinking' as const,
      pieces: wellFormed(pieces),
      signature,
    })),
    toolCall.map((tool) => ({ type: 'tool_use' as const, ...tool })),
    fc.base64String({ minLength: 1 }).map((data) => ({ type: 'redacted_thinking' as const, data })),
  )
  const source = fc
    .record({
      blocks: fc.array(block, { minLength: 1, maxLength: 6 }),
      pings: fc.boolean(),
      spaced: fc.boolean(),
    })
    .filter(({ blocks }) => blocks.some((one) => !('pieces' in one) || one.pieces.join('') !== ''))
  type Source = typeof source extends fc.Arbitrary<infer T> ? T : never

  function streamOf({ blocks, pings, spaced }: Source): string {
    const event = (json: { type: string }) => `event: ${json.type}\ndata: ${jsonText(json, spaced)}\n\n`
    const delta = (index: number, of: object) =>
      event({ type: 'content_block_delta', index, delta: of } as never)
    const started = (one: Source['blocks'][number], index: number) => {
      if (one.type === 'text') return { type: 'text', text: '' }
      if (one.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' }
      if (one.type === 'tool_use')
        return { type: 'tool_use', id: `toolu_${index}`, name: one.name, input: {} }
      return one
    }
    const deltas = (one: Source['blocks'][number]): object[] => {
      if (one.type === 'text') return one.pieces.map((text) => ({ type: 'text_delta', text }))
      if (one.type === 'thinking')
        return [
          ...one.pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: one.signature },
        ]
      if (one.type !== 'tool_use') return []
      return (one.bare ? [''] : one.json).map((partial) => ({
        type: 'input_json_delta',
        partial_json: partial,
      }))
    }
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      usage: { input_tokens: 7, cache_read_input_tokens: 2, output_tokens: 1 },
    }
    return [
      event({ type: 'message_start', message } as never),
      ...blocks.flatMap((one, index) => [
        event({ type: 'content_block_start', index, content_block: started(one, index) } as never),
        ...(pings ? [event({ type: 'ping' })] : []),
        ...deltas(one).map((of) => delta(index, of)),
        event({ type: 'content_block_stop', index } as never),
      ]),
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 4 },
      } as never),
      event({ type: 'message_stop' }),
    ].join('')
  }

  it('make a completion of the same content', () => {
    fc.assert(
      fc.property(source, (given) => {
        const request = { stream_options: { include_usage: true } }
        const { text, end, skipped } = relayTranslated('anthropic', streamOf(given), { request })
        assert.equal(end, 'complete')
        assert.equal(skipped, 0)
        const { message, finish_reason: finish, usage } = completionOf(text)
        const of = <T extends string>(type: T) =>
          given.blocks.filter(
            (one): one is Extract<Source['blocks'][number], { type: T }> => one.type === type,
          )
        assert.equal(
          message.content,
          of('text')
            .flatMap(({ pieces }) => pieces)
            .join(''),
        )
        const tools = message.tool_calls ?? []
        assert.deepEqual(
          tools.map((call: { function: { name: string; arguments: string } }) => [
            call.function.name,
            JSON.parse(call.function.arguments),
          ]),
          of('tool_use').map((tool) => [tool.name, inputOf(tool)]),
        )
        const thought = given.blocks.flatMap((one): object[] => {
          if (one.type === 'thinking')
            return [{ type: 'thinking', thinking: one.pieces.join(''), signature: one.signature }]
          return one.type === 'redacted_thinking' ? [one] : []
        })
        assert.ok(isJsonObject(message))
        assert.deepEqual(thinkingBlocks(message), thought)
        assert.equal(finish, tools.length > 0 ? 'tool_calls' : 'stop')
        assert.deepEqual(
          [usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens],
          [9, 4, 2],
        )
      }),
      { numRuns: 120 },
    )
  })

  testRelayPaths('anthropic', source.map(streamOf))

  it('cite one page, or several, at the end of the text that they were cited for', () => {
    const page = (name: string) => ({
      type: 'web_search_result_location',
      url: `https://a.test/${name}`,
      title: name,
    })
    const cited = (start_index: number, end_index: number, name: string) => ({
      type: 'url_citation',
      url_citation: { start_index, end_index, url: `https://a.test/${name}`, title: name },
    })
    const event = (type: string, members: object = {}) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
    const block = (index: number, text: string, ...names: string[]) =>
      event('content_block_start', { index, content_block: { type: 'text', text: '' } }) +
      event('content_block_delta', { index, delta: { type: 'text_delta', text } }) +
      names
        .map((name) =>
          event('content_block_delta', { index, delta: { type: 'citations_delta', citation: page(name) } }),
        )
        .join('') +
      event('content_block_stop', { index })
    const { text } = relayTranslated(
      'anthropic',
      event('message_start', { message: { id: 'msg_1', role: 'assistant', model: 'm', content: [] } }) +
        block(0, 'Hello') +
        block(1, ' rain', 'a') +
        block(2, ' sun', 'b', 'c') +
        event('message_delta', { delta: { stop_reason: 'end_turn' } }) +
        event('message_stop'),
    )
    assert.deepEqual(completionOf(text).message.annotations, [
      cited(5, 10, 'a'),
      cited(10, 14, 'b'),
      cited(10, 14, 'c'),
    ])
  })
})

const direction = translationOf(chatCompletions, { protocol: 'anthropic' })
const start = (content_block: unknown, index = 0) => ({ type: 'content_block_start', index, content_block })
const delta = (of: unknown, index = 0) => ({ type: 'content_block_delta', index, delta: of })
const text = (said: string, index = 0) => delta({ type: 'text_delta', text: said }, index)
const stop = (index = 0) => ({ type: 'content_block_stop', index })
const end = (of: unknown, usage?: object) => ({ type: 'message_delta', delta: of, usage })
const BEGIN = { type: 'message_start', message: { id: 'msg_1', model: 'claude' } }

function translator(request: Record<string, unknown> = {}): StreamTranslator {
  const made = direction?.stream({ request, created: 5, estimatedInputTokens: 9 })
  assert.ok(made)
  return made
}

/** The stream that a chat caller gets for these events. */
function told(events: readonly object[], request: Record<string, unknown> = {}) {
  const stream = translator(request)
  const written = events.map((event) => stream.push(event)).join('')
  const whole = written + stream.end({ inputTokens: 7, outputTokens: 4 })
  return { ...completionOf(whole), skipped: stream.skipped }
}

const signed = (index: number, length: number, signature: string) => ({
  type: 'reasoning.text',
  format: 'anthropic-claude-v1',
  index,
  length,
  signature,
})

describe('a stream of an Anthropic-style line', () => {
  const NAMES: [what: string, events: object[], id: string, model: string][] = [
    ['as they are', [BEGIN], 'msg_1', 'claude'],
    ['without the beginning', [], 'chatcmpl-5', 'asked'],
    ['with a beginning that is none', [{ type: 'message_start', message: 'x' }], 'chatcmpl-5', 'asked'],
    [
      'whose are none',
      [{ type: 'message_start', message: { id: '', model: { a: 1 } } }],
      'chatcmpl-5',
      'asked',
    ],
  ]
  for (const [what, events, id, model] of NAMES) {
    it(`has an id and a model, and ids of its calls: ${what}`, () => {
      const given = [
        ...events,
        start({ type: 'tool_use', name: 'f' }),
        start({ type: 'tool_use', name: 7 }, 1),
        start({ type: 'tool_use', name: 'g' }, 2),
      ]
      const made = told(given, { model: 'asked' })
      assert.equal(made.skipped, 1, 'a call without a name cannot be run')
      assert.deepEqual([made.id, made.model], [id, model])
      assert.deepEqual(made.message.tool_calls, [
        { id: derivedId(`${id}:0`), type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: derivedId(`${id}:1`), type: 'function', function: { name: 'g', arguments: '{}' } },
      ])
    })
  }

  it('is kept alive by events without content', () => {
    const stream = translator()
    assert.deepEqual(
      [stream.push({ type: 'ping' }), stream.push(undefined), stream.push(BEGIN) === ''],
      [': ping\n\n', ': ping\n\n', false],
    )
    for (const nothing of [stop(), end({}), { type: 'message_stop' }, BEGIN, start('x'), delta('x')])
      assert.equal(stream.push(nothing), '', JSON.stringify(nothing))
    assert.equal(stream.skipped, 0)
  })

  it('counts what a chat cannot express, and continues', () => {
    const made = told([
      BEGIN,
      { type: 'mystery' },
      start({ type: 'mystery', text: 'no' }),
      text('no'),
      delta({ type: 'input_json_delta', partial_json: '{}' }),
      stop(),
      start({ type: 'server_tool_use', name: 'web_search', input: { query: 'a' } }, 1),
      start({ type: 'web_search_tool_result', content: [] }, 2),
      start({ type: 'text', text: '' }, 3),
      delta({ type: 'text_delta', text: 'Hi', mystery: 1, later: { a: 1 } }, 3),
      delta({ type: 'text_delta', text: '!', none: null, empty: '' }, 3),
      stop(3),
    ])
    assert.deepEqual(made.message, { content: 'Hi!' })
    assert.equal(made.skipped, 6)
  })

  it('may have all of a block in its start event, or no start event', () => {
    const made = told([
      BEGIN,
      start({ type: 'thinking', thinking: 'Hm', signature: 's' }),
      stop(),
      start({ type: 'text', text: 'So' }, 1),
      stop(1),
      text(' be it', 2),
    ])
    assert.deepEqual(made.message, {
      content: 'So be it',
      reasoning_content: 'Hm',
      reasoning_details: [signed(0, 2, 's')],
    })
  })

  it('signs what was thought once it has ended, if it is signed at all', () => {
    const made = told([
      start({ type: 'thinking', thinking: 'a' }),
      delta({ type: 'thinking_delta', thinking: 'bc' }),
      delta({ type: 'signature_delta', signature: 7 }),
      stop(),
      start({ type: 'thinking', signature: 'first' }, 1),
      delta({ type: 'thinking_delta', thinking: 'd' }, 1),
      delta({ type: 'signature_delta' }, 1),
      stop(1),
      start({ type: 'redacted_thinking' }, 2),
      stop(2),
      start({ type: 'redacted_thinking', data: 'x' }, 3),
      delta({ type: 'thinking_delta', thinking: 'no' }, 3),
      stop(3),
      start({ type: 'thinking', thinking: '' }, 4),
      delta({ type: 'thinking_delta', thinking: 'e' }, 4),
      delta({ type: 'signature_delta', signature: 'last' }, 4),
    ])
    assert.equal(made.message.reasoning_content, 'abcde')
    assert.deepEqual(made.message.reasoning_details, [
      signed(0, 1, 'first'),
      { type: 'reasoning.encrypted', format: 'anthropic-claude-v1', index: 1, length: 0, data: 'x' },
      signed(2, 1, 'last'),
    ])
    assert.equal(made.skipped, 0)
  })

  const INPUTS: [what: string, input: unknown, pieces: unknown[], made: string][] = [
    ['in the beginning', { a: 1 }, [], '{"a":1}'],
    ['in pieces', {}, ['{"a":', '', '1}'], '{"a":1}'],
    ['in pieces, which stand before those in the beginning', { b: 2 }, ['{"a":1}'], '{"a":1}'],
    ['nowhere', undefined, [], '{}'],
    ['as what is no object', 'x', [null, 7, ''], '{}'],
  ]
  for (const [what, input, pieces, args] of INPUTS) {
    for (const ends of [true, false]) {
      it(`has the arguments of a call ${what}${ends ? '' : ', without an end'}`, () => {
        const { message } = told([
          start({ type: 'tool_use', id: 'toolu_1', name: 'f', input }),
          ...pieces.map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
          ...(ends ? [stop()] : []),
        ])
        assert.deepEqual(message.tool_calls, [
          { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: args } },
        ])
      })
    }
  }

  it('reports reasoning by the last count that it got', () => {
    const request = { stream_options: { include_usage: true } }
    const counted = (thinking_tokens: number) => ({ output_tokens_details: { thinking_tokens } })
    const begun = { type: 'message_start', message: { ...BEGIN.message, usage: counted(1) } }
    const tokens = (...events: object[]) =>
      told(events, request).usage.completion_tokens_details?.reasoning_tokens
    assert.equal(tokens(begun, text('a')), 1)
    assert.equal(tokens(begun, text('a'), end({}, counted(3)), end({}, {})), 3)
    assert.equal(tokens(BEGIN, text('a')), undefined)
  })

  it('contains its usage only for callers that ask for it, and then null in every other chunk', () => {
    for (const options of [undefined, null, {}, { include_usage: 'yes' }]) {
      const stream = translator({ stream_options: options })
      const whole = stream.push(text('a')) + stream.end({ inputTokens: 7 })
      for (const chunk of eventsOf(whole)) assert.equal('usage' in chunk, false)
    }
    const asking = translator({ stream_options: { include_usage: true } })
    const chunks = eventsOf(asking.push(text('a')) + asking.end({ inputTokens: 7 }))
    assert.deepEqual(
      chunks.slice(0, -1).map(({ usage }) => usage),
      [null, null, null],
    )
    assert.deepEqual(chunks.at(-1).choices, [])
    assert.equal(chunks.at(-1).usage.prompt_tokens, 7)
  })

  const ENDS: [what: unknown, finish: string, refusal?: string][] = [
    [{ stop_reason: 'max_tokens' }, 'length'],
    [{ stop_reason: 'refusal' }, 'stop', 'The model declined to answer.'],
    [
      { stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'Not this.' } },
      'stop',
      'Not this.',
    ],
    [{ stop_reason: null }, 'stop'],
    ['x', 'stop'],
    [undefined, 'stop'],
  ]
  for (const [given, finish, refusal] of ENDS) {
    it(`ends with ${JSON.stringify(given)} as a chat with ${finish}`, () => {
      const made = told([BEGIN, text('a'), end(given)])
      assert.deepEqual([made.finish_reason, made.message.refusal], [finish, refusal])
      // A later one without a reason takes nothing back.
      const later = told([BEGIN, text('a'), end(given), end({ stop_reason: null })])
      assert.deepEqual([later.finish_reason, later.message.refusal], [finish, refusal])
    })
  }

  it('comes without its code block where JSON was asked for, whatever its last piece', () => {
    const request = { response_format: { type: 'json_object' } }
    for (const pieces of [['```json\n{}', '\n```'], ['```json\n{} ', '```'], ['{}'], ['```\n', '{}']]) {
      const { message } = told([BEGIN, ...pieces.map((piece) => text(piece))], request)
      assert.equal(message.content.trim(), '{}')
    }
    assert.equal(told([text('`'), text(' ')], request).message.content, '` ')
  })
})
