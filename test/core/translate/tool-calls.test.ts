import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import {
  chatCompletions,
  messages,
  type Operation,
  responses,
  type StreamingOperation,
} from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import { type Call, callsOnAnthropicLine, callsOnChatLine, tokenOf } from './support/line-calls.ts'
import { eventsOf, relayTranslated } from './support/streams.ts'

type Protocol = 'chat' | 'messages' | 'responses'
type LineProtocol = 'openai' | 'anthropic'

/** How a line makes the ids of its calls. */
const NUMBERINGS = {
  counted: (_turn: number, call: number) => `call_${call}`,
  equal: () => 'call_0',
  kimi: (_turn: number, call: number) => `functions.f:${call}`,
  vllm: (turn: number, call: number) => `chatcmpl-tool-${`${turn}${call}`.padEnd(32, 'a')}`,
  random: (turn: number, call: number) => `toolu_${turn}x${call}`.padEnd(30, 'r'),
  none: () => undefined,
} as const
type Numbering = keyof typeof NUMBERINGS

interface Line {
  readonly protocol: LineProtocol
  readonly numbering: Numbering
}

interface Turn {
  readonly line: number
  readonly stream: boolean
  readonly calls: number
  /** Whether the user writes a message before the results are there. */
  readonly steers: boolean
  /** Whether the results come in the reverse order. */
  readonly reversed: boolean
}

/** A call as it is known to the line, by the token in its arguments. */
interface Made {
  readonly token: string
  readonly line: number
  readonly own: string | undefined
}

/** How a caller writes down what it got, and what it asks next. */
interface Caller {
  readonly operation: Operation
  readonly ids: RegExp
  request(history: readonly JsonObject[]): JsonObject
  ask(text: string): JsonObject
  /** The entries for an answer, as an SDK's user appends them. */
  said(answer: JsonObject): JsonObject[]
  calls(answer: JsonObject): Call[]
  results(calls: readonly Call[]): JsonObject[]
  /** Whether a message may stand between a call and its result. */
  readonly allowsSteering: boolean
}

const CALLERS: Readonly<Record<Protocol, Caller>> = {
  chat: {
    operation: chatCompletions,
    ids: /^.{1,40}$/,
    request: (history) => ({ model: 'm', messages: history }),
    ask: (content) => ({ role: 'user', content }),
    said: ({ choices }) => [objectsIn(choices)[0]?.message as JsonObject],
    calls: ({ choices }) =>
      objectsIn((objectsIn(choices)[0]?.message as JsonObject | undefined)?.tool_calls).map(
        ({ id, function: fn }) => ({
          id: String(id),
          token: tokenOf((fn as JsonObject).arguments),
        }),
      ),
    results: (calls) =>
      calls.map(({ id, token }) => ({ role: 'tool', tool_call_id: id, content: `result of ${token}` })),
    allowsSteering: true,
  },
  messages: {
    operation: messages,
    ids: /^[a-zA-Z0-9_-]+$/,
    request: (history) => ({ model: 'm', max_tokens: 100, messages: history }),
    ask: (content) => ({ role: 'user', content }),
    said: ({ content }) => [{ role: 'assistant', content }],
    calls: ({ content }) =>
      objectsIn(content)
        .filter(({ type }) => type === 'tool_use')
        .map(({ id, input }) => ({ id: String(id), token: tokenOf(input) })),
    results: (calls) => [
      {
        role: 'user',
        content: calls.map(({ id, token }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: `result of ${token}`,
        })),
      },
    ],
    allowsSteering: false,
  },
  responses: {
    operation: responses,
    ids: /^.{1,80}$/,
    request: (input) => ({ model: 'm', input }),
    ask: (content) => ({ role: 'user', content }),
    said: ({ output }) => objectsIn(output),
    calls: ({ output }) =>
      objectsIn(output)
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id: id, arguments: args }) => ({ id: String(id), token: tokenOf(args) })),
    results: (calls) =>
      calls.map(({ id, token }) => ({
        type: 'function_call_output',
        call_id: id,
        output: `result of ${token}`,
      })),
    allowsSteering: true,
  },
}

const END_POINTS = {
  openai: { protocol: 'openai', endpoints: new Set(['chat/completions']) },
  anthropic: { protocol: 'anthropic' },
} as const

/** The answer of a line that makes calls. */
function answerOf({ protocol }: Line, answerId: string, made: readonly Made[]): JsonObject {
  if (protocol === 'anthropic')
    return {
      id: answerId,
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: made.map(({ own: id, token: t }) => ({
        type: 'tool_use',
        ...(id !== undefined && { id }),
        name: 'f',
        input: { t },
      })),
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    }
  const calls = made.map(({ own: id, token: t }) => ({
    ...(id !== undefined && { id }),
    type: 'function',
    function: { name: 'f', arguments: JSON.stringify({ t }) },
  }))
  return {
    id: answerId,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls: calls },
        finish_reason: 'tool_calls',
      },
    ],
  }
}

/** The whole answer that a caller's stream says. */
function wholeOf(operation: Operation, text: string): JsonObject {
  return (operation as StreamingOperation).answerForm?.fromStream(eventsOf(text)) ?? {}
}

/** Runs a conversation, and checks after each turn what the caller has and what the line gets. */
function converse(protocol: Protocol, lines: readonly Line[], turns: readonly Turn[]): void {
  const caller = CALLERS[protocol]
  const history: JsonObject[] = [caller.ask('hi')]
  const known: Made[] = []
  const ids: string[] = []
  for (const [turn, { line: index, stream, calls: count, steers, reversed }] of turns.entries()) {
    const line = lines[index % lines.length] as Line
    const translation = translationOf(caller.operation, END_POINTS[line.protocol])
    assert.ok(translation)
    const request = { ...caller.request(history), ...(stream && { stream }) }
    const sent = translation.request(request, { upstreamModel: 'm', defaultMaxTokens: 100 })
    const seen = (line.protocol === 'anthropic' ? callsOnAnthropicLine : callsOnChatLine)(
      objectsIn(sent.messages),
    )
    assert.deepEqual(
      seen.map(({ token }) => token),
      known.map(({ token }) => token),
    )
    for (const [i, { line: maker, own }] of known.entries())
      if (lines[maker % lines.length] === line && own !== undefined && line.protocol === 'openai')
        assert.equal(seen[i]?.id, own, 'the line gets its own id')
    const made = Array.from({ length: count }, (_, call) => ({
      token: `${turn}.${call}`,
      line: index,
      own: NUMBERINGS[line.numbering](turn, call),
    }))
    const whole = answerOf(line, `answer${line.numbering === 'none' ? '' : turn}`, made)
    let answer: JsonObject
    if (stream) {
      const { to, from } = translation
      const text = (to as StreamingOperation).answerForm?.toStream(whole) ?? ''
      const relayed = relayTranslated(line.protocol === 'anthropic' ? 'anthropic' : 'openai', text, {
        passage: translation,
        request,
      })
      assert.equal(relayed.end, 'complete')
      answer = wholeOf(from, relayed.text)
    } else answer = translation.answer(whole, {}, { request, created: 5, estimatedInputTokens: 0 }).body
    const got = caller.calls(answer)
    assert.deepEqual(
      got.map(({ token }) => token),
      made.map(({ token }) => token),
    )
    for (const { id } of got) assert.match(id, caller.ids)
    ids.push(...got.map(({ id }) => id))
    assert.equal(new Set(ids).size, ids.length, 'the caller has no id twice')
    known.push(...made)
    history.push(...caller.said(answer))
    if (steers && caller.allowsSteering) history.push(caller.ask('wait'))
    history.push(...caller.results(reversed ? got.toReversed() : got))
  }
}

const turn = fc.record({
  line: fc.nat(2),
  stream: fc.boolean(),
  calls: fc.integer({ min: 1, max: 3 }),
  steers: fc.boolean(),
  reversed: fc.boolean(),
})

describe('the tool calls of a conversation', () => {
  const protocols = Object.keys(CALLERS) as Protocol[]
  for (const protocol of protocols) {
    const served = (['openai', 'anthropic'] as const).filter(
      (line) => translationOf(CALLERS[protocol].operation, END_POINTS[line]) !== undefined,
    )
    const line = fc.record({
      protocol: fc.constantFrom(...served),
      numbering: fc.constantFrom(...(Object.keys(NUMBERINGS) as Numbering[])),
    })

    it(`of ${protocol} have unique ids for the caller, and its own for each line, in valid requests`, () => {
      fc.assert(
        fc.property(
          fc.array(line, { minLength: 1, maxLength: 3 }),
          fc.array(turn, { minLength: 1, maxLength: 4 }),
          (lines, turns) => converse(protocol, lines, turns),
        ),
        { numRuns: 100 },
      )
    })
  }
})

describe('the arguments of a tool call', () => {
  /** Inputs as callers and lines write them, and what they mean. */
  const INPUTS: readonly (readonly [name: string, value: unknown, meaning: JsonObject])[] = [
    ['missing', undefined, {}],
    ['null', null, {}],
    ['empty', '', {}],
    ['blank', ' \n', {}],
    ['the text null', 'null', {}],
    ['an empty object', {}, {}],
    ['an object', { a: 1 }, { a: 1 }],
    ['JSON text', '{"a": [1, null]}', { a: [1, null] }],
    ['JSON text with white space', ' {"a":1}\n', { a: 1 }],
    ['JSON text of an empty object', '{}', {}],
  ]
  const parsed = (args: unknown): unknown => (typeof args === 'string' ? JSON.parse(args) : args)
  const context = { upstreamModel: 'm', defaultMaxTokens: 100 }

  const asked = (protocol: Protocol, value: unknown): JsonObject => {
    const caller = CALLERS[protocol]
    const said: Readonly<Record<Protocol, JsonObject>> = {
      chat: {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: value } }],
      },
      messages: { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: value }] },
      responses: { type: 'function_call', call_id: 'c', name: 'f', arguments: value },
    }
    const result = caller.results([{ id: 'c', token: 't' }])
    return caller.request([caller.ask('hi'), said[protocol], ...result])
  }
  const onLine = (request: JsonObject): unknown => {
    const turns = objectsIn(request.messages).filter(({ role }) => role === 'assistant')
    const [call] = turns.flatMap(({ tool_calls: calls }) => objectsIn(calls))
    const [use] = turns.flatMap(({ content }) => objectsIn(content))
    if (use) return use.input
    const args = (call?.function as JsonObject | undefined)?.arguments
    assert.equal(typeof args, 'string')
    return parsed(args)
  }
  const answerWith = (line: 'openai' | 'anthropic', value: unknown): JsonObject =>
    line === 'openai'
      ? {
          id: 'c',
          choices: [
            {
              index: 0,
              message: {
                role: 'assistant',
                content: null,
                tool_calls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: value } }],
              },
              finish_reason: 'tool_calls',
            },
          ],
        }
      : {
          id: 'm',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [{ type: 'tool_use', id: 'x', name: 'f', input: value }],
          stop_reason: 'tool_use',
          usage: {},
        }
  /** The streams that say it: the arguments whole, in pieces, and, on Anthropic-style lines, in the first event of the block. */
  const streamsWith = (line: 'openai' | 'anthropic', value: unknown): string[] => {
    if (line === 'openai') {
      const chunk = (delta: object, finish_reason: string | null = null) =>
        `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
      const first = (args: unknown) =>
        chunk({
          tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'f', arguments: args } }],
        })
      const piece = (args: unknown) => chunk({ tool_calls: [{ index: 0, function: { arguments: args } }] })
      const end = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`
      const pieces = typeof value === 'string' ? [...value] : [value]
      return [
        first(value) + end,
        first('') + piece(value) + end,
        first('') + pieces.map(piece).join('') + end,
      ]
    }
    const sse = (event: JsonObject): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
    const stream = (input: unknown, pieces: readonly string[]) =>
      [
        { type: 'message_start', message: { id: 'm', model: 'm', content: [], usage: {} } },
        {
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'tool_use', id: 'x', name: 'f', input },
        },
        ...pieces.map((partial_json) => ({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'input_json_delta', partial_json },
        })),
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ]
        .map(sse)
        .join('')
    return typeof value === 'string'
      ? [stream(value, []), stream({}, [value]), stream({}, [...value])]
      : [stream(value, [])]
  }
  const inAnswer = (protocol: Protocol, answer: JsonObject): unknown => {
    const [choice] = objectsIn(answer.choices)
    const message = isJsonObject(choice?.message) ? choice.message : {}
    const [call] = objectsIn(message.tool_calls)
    if (protocol === 'chat') return parsed((call?.function as JsonObject | undefined)?.arguments)
    const [item] = protocol === 'messages' ? objectsIn(answer.content) : objectsIn(answer.output)
    return protocol === 'messages' ? item?.input : parsed(item?.arguments)
  }

  for (const [name, value, meaning] of INPUTS) {
    it(`of an Anthropic-style line mean ${JSON.stringify(meaning)}, turned into a stream and back, if they are ${name}`, () => {
      const { answerForm: form } = messages
      const text = form?.toStream(answerWith('anthropic', value)) ?? ''
      assert.deepEqual(inAnswer('messages', wholeOf(messages, text)), meaning)
    })
  }

  for (const protocol of Object.keys(CALLERS) as Protocol[]) {
    for (const line of ['openai', 'anthropic'] as const) {
      const translation = translationOf(CALLERS[protocol].operation, END_POINTS[line])
      if (!translation) continue
      for (const [name, value, meaning] of INPUTS) {
        it(`of ${protocol} on an ${line} line mean ${JSON.stringify(meaning)}, if they are ${name}`, () => {
          assert.deepEqual(onLine(translation.request(asked(protocol, value), context)), meaning)
        })

        it(`of an ${line} line mean ${JSON.stringify(meaning)} for ${protocol}, if they are ${name}`, () => {
          const request = CALLERS[protocol].request([CALLERS[protocol].ask('hi')])
          const told = { request, created: 5, estimatedInputTokens: 0 }
          const { body } = translation.answer(answerWith(line, value), {}, told)
          assert.deepEqual(inAnswer(protocol, body), meaning)
          for (const stream of streamsWith(line, value)) {
            const { text, end } = relayTranslated(line, stream, {
              passage: translation,
              request: { ...request, stream: true },
            })
            assert.equal(end, 'complete')
            assert.deepEqual(inAnswer(protocol, wholeOf(translation.from, text)), meaning, stream)
          }
        })
      }
    }
  }
})

describe('a call that a conversation has in two forms', () => {
  const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
  const chat = translationOf(chatCompletions, END_POINTS.anthropic)
  const message = translationOf(messages, END_POINTS.openai)
  const response = translationOf(responses, END_POINTS.openai)
  const fn = { name: 'f', arguments: '{"t":"x"}' }
  const call = { id: 'c', type: 'function', function: fn }
  const use = { type: 'tool_use', id: 'c', name: 'f', input: { t: 'x' } }
  const [ask, result] = [{ role: 'user', content: 'hi' }, CALLERS.chat.results([{ id: 'c', token: 'x' }])]
  const once = [{ id: 'c', token: 'x' }]

  const TURNS: readonly (readonly [name: string, turn: JsonObject])[] = [
    ['`tool_calls` and `function_call`', { tool_calls: [call], function_call: fn }],
    ['`tool_calls` and a part of the content', { tool_calls: [call], content: [use] }],
    ['`tool_calls` twice', { tool_calls: [call, call] }],
    ['first without its input', { tool_calls: [{ ...call, function: { name: 'f' } }, call] }],
  ]
  for (const [name, turn] of TURNS) {
    it(`is one for an Anthropic-style line: ${name}`, () => {
      const json = { model: 'm', messages: [ask, { role: 'assistant', content: null, ...turn }, ...result] }
      assert.deepEqual(callsOnAnthropicLine(objectsIn(chat?.request(json, context).messages)), once)
    })
  }

  it('is one for a chat line: `tool_use` twice, and an item of a response twice', () => {
    const turns = [ask, { role: 'assistant', content: [use, use] }, ...CALLERS.messages.results(once)]
    const json = { model: 'm', max_tokens: 9, messages: turns }
    assert.deepEqual(callsOnChatLine(objectsIn(message?.request(json, context).messages)), once)
    const item = { type: 'function_call', call_id: 'c', ...fn }
    const input = [ask, item, item, ...CALLERS.responses.results(once)]
    assert.deepEqual(
      callsOnChatLine(objectsIn(response?.request({ model: 'm', input }, context).messages)),
      once,
    )
  })

  it('is two where the names or the inputs differ', () => {
    const other = { ...call, function: { name: 'f', arguments: '{"t":"y"}' } }
    const results = CALLERS.chat.results([...once, { id: 'c', token: 'y' }])
    const turn = { role: 'assistant', content: null, tool_calls: [call, other] }
    const seen = callsOnAnthropicLine(
      objectsIn(chat?.request({ model: 'm', messages: [ask, turn, ...results] }, context).messages),
    )
    assert.deepEqual(
      seen.map(({ token }) => token),
      ['x', 'y'],
    )
  })

  it('is one in a stream that has `function_call` alone, or beside `tool_calls`', () => {
    const chunk = (delta: object, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    const end = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`
    const old = { function_call: fn }
    const current = { tool_calls: [{ index: 0, ...call }] }
    assert.ok(message)
    for (const deltas of [[old], [old, current], [current, old], [{ ...old, ...current }]]) {
      const stream = deltas.map((delta) => chunk(delta)).join('') + end
      const { text } = relayTranslated('openai', stream, { passage: message, request: { stream: true } })
      const answer = wholeOf(messages, text)
      assert.deepEqual(
        CALLERS.messages.calls(answer).map(({ token }) => token),
        ['x'],
      )
    }
  })

  it('is not one with another call of a stream that has the same id, index or neither', () => {
    const chunk = (delta: object, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    const end = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`
    const piece = (name: string, token: string, more: object) => ({
      ...more,
      function: { name, arguments: JSON.stringify({ t: token }) },
    })
    assert.ok(message)
    for (const [first, second, other] of [
      [{ index: 0, id: 'call_0' }, { index: 1, id: 'call_0' }, 'f'],
      [{ index: 0, id: 'call_0' }, { index: 0, id: 'call_0' }, 'g'],
      [{ index: 0, id: 'a' }, { index: 0, id: 'b' }, 'f'],
      [{}, {}, 'f'],
      [{ id: '' }, { id: '' }, 'f'],
    ] as const) {
      const deltas = [piece('f', 'x', first), piece(other, 'y', second)]
      const stream = deltas.map((one) => chunk({ tool_calls: [one] })).join('') + end
      const { text } = relayTranslated('openai', stream, { passage: message, request: { stream: true } })
      const answer = wholeOf(messages, text)
      const calls = CALLERS.messages.calls(answer)
      assert.deepEqual(
        calls.map(({ token }) => token),
        ['x', 'y'],
      )
      assert.notEqual(calls[0]?.id, calls[1]?.id)
    }
  })
})
