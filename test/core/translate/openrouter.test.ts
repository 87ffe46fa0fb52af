import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { chatCompletions, messages } from '../../../lib/core/operations/index.ts'
import { type Translation, translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import {
  chatWithoutRouterMembers,
  hasRouterMembers,
  isRouter,
  speaksOpenRouter,
} from '../../../lib/core/translate/openrouter.ts'
import { chatChunk, messageEvent } from '../../support/scripted-upstream.ts'
import { ANTHROPIC, ask, chat, message, OPENAI, text } from './support/requests.ts'
import { completionOf, messageOf, relayTranslated } from './support/streams.ts'

const MARK = { type: 'ephemeral' }
const marked = (words: string) => ({ ...text(words), cache_control: MARK })
const format = 'anthropic-claude-v1'

describe('a line', () => {
  it('is a router by its provider or its host', () => {
    const origin = 'https://api.openai.com'
    for (const line of [
      { provider: 'openrouter', origin },
      { provider: 'OpenRouter', origin },
      { provider: 'x', origin: 'https://openrouter.ai' },
      { provider: 'x', origin: 'https://ai-gateway.vercel.sh' },
      { provider: 'together', origin },
    ])
      assert.equal(isRouter(line), true)
    for (const provider of ['openai', 'myrouter', 'openrouters'])
      assert.equal(isRouter({ provider, origin }), false)
  })
})

describe('a chat in the words of OpenRouter, on a line that is no router,', () => {
  const plain = (json: JsonObject, upstreamModel = 'gpt-5.2') =>
    chatWithoutRouterMembers(
      { model: 'm', messages: ask, ...json },
      { upstreamModel, defaultMaxTokens: 10_000 },
    )

  const ASKED: [given: JsonObject, effort: string | undefined][] = [
    [{ reasoning: { effort: 'xhigh' } }, 'xhigh'],
    [{ reasoning: { effort: 'none' } }, 'none'],
    [{ reasoning: { enabled: false } }, 'none'],
    [{ reasoning: { enabled: true } }, 'medium'],
    [{ reasoning: { max_tokens: 9000 } }, 'high'],
    [{ reasoning: { max_tokens: 100 }, max_tokens: 1000 }, 'low'],
    [{ reasoning: { exclude: true } }, undefined],
    [{ reasoning: {} }, undefined],
    [{ reasoning: { effort: 'low' }, reasoning_effort: 'high' }, 'high'],
  ]
  for (const [given, effort] of ASKED)
    it(`has the effort of ${JSON.stringify(given)}`, () => {
      const { reasoning_effort, reasoning } = plain(given)
      assert.deepEqual([reasoning_effort, reasoning], [effort, undefined])
    })

  it('is refused for an effort that the model lacks', () => {
    assert.throws(
      () => plain({ reasoning: { effort: 'max' } }),
      (error) =>
        error instanceof Untranslatable && error.param === 'reasoning' && error.what === 'the effort "max"',
    )
  })

  it('has no request for its usage, which is there in any case', () => {
    assert.equal('usage' in plain({ usage: { include: true } }), false)
    assert.equal(
      plain({ usage: 7, reasoning: 'x' }).usage,
      7,
      'what is something else is the line’s to refuse',
    )
  })

  it('has no name of the session, by which OpenRouter groups calls', () => {
    assert.equal('session_id' in plain({ session_id: 'run-7' }), false)
    assert.equal(hasRouterMembers(chatCompletions, { session_id: 'run-7' }), true)
  })

  const cached = {
    cache_control: MARK,
    messages: [
      { role: 'system', content: [marked('a'), text('b')] },
      { role: 'user', content: 'hi', cache_control: MARK },
      7,
    ],
    tools: [{ type: 'function', function: { name: 'f', cache_control: MARK }, cache_control: MARK }],
  }
  it('has marks of what to cache only for models that read them', () => {
    assert.deepEqual(plain(cached), {
      model: 'm',
      messages: [{ role: 'system', content: [text('a'), text('b')] }, { role: 'user', content: 'hi' }, 7],
      tools: [{ type: 'function', function: { name: 'f' } }],
    })
    for (const model of ['anthropic/claude-opus-4.6', 'qwen3-max'])
      assert.deepEqual(plain(cached, model), { model: 'm', ...cached })
  })

  it('is recognized by what other lines refuse', () => {
    const has = (json: JsonObject, operation: typeof chatCompletions | typeof messages = chatCompletions) =>
      hasRouterMembers(operation, json)
    const markedOnes = [
      { messages: [{ content: [marked('a')] }] },
      { messages: [{ role: 'user', ...marked('a') }] },
      { tools: [{ type: 'function', function: { name: 'a', ...marked('a') } }] },
      marked('a'),
    ]
    for (const json of [{ reasoning: {} }, { usage: {} }, ...markedOnes])
      assert.deepEqual([has(json), has(json, messages)], [true, false])
    for (const json of [
      {},
      { reasoning: 'x', usage: null },
      { messages: ask, reasoning_effort: 'low' },
      { messages: [{ role: 'user', content: '"cache_control"' }] },
    ])
      assert.deepEqual([has(json), speaksOpenRouter(json)], [false, false])
  })
})

const THINKING = 'Let me think.'
const SAID = [
  { type: 'thinking', thinking: THINKING, signature: 'sig' },
  { type: 'redacted_thinking', data: 'sealed' },
  text('Hi'),
]
const EVENTS = [
  messageEvent('message_start', { message: { id: 'm', model: 'm', usage: { input_tokens: 1 } } }),
  messageEvent('content_block_start', {
    index: 0,
    content_block: { type: 'thinking', thinking: '', signature: '' },
  }),
  ...['Let me ', 'think.'].map((thinking) =>
    messageEvent('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking } }),
  ),
  messageEvent('content_block_delta', { index: 0, delta: { type: 'signature_delta', signature: 'sig' } }),
  messageEvent('content_block_stop', { index: 0 }),
  messageEvent('content_block_start', { index: 1, content_block: SAID[1] }),
  messageEvent('content_block_stop', { index: 1 }),
  messageEvent('content_block_start', { index: 2, content_block: text('Hi') }),
  messageEvent('content_block_stop', { index: 2 }),
  messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
  messageEvent('message_stop'),
]

describe('the thinking of an Anthropic-style line', () => {
  const toChat = translationOf(chatCompletions, ANTHROPIC) as Translation
  const answered = (request: JsonObject): JsonObject => {
    const answer = { id: 'm', model: 'm', content: SAID, stop_reason: 'end_turn' }
    const { body } = toChat.answer(answer, {}, { request, created: 5, estimatedInputTokens: 9 })
    return objectsIn(body.choices)[0]?.message as JsonObject
  }
  const streamed = (request: JsonObject): string =>
    relayTranslated('anthropic', EVENTS.join(''), { passage: toChat, request: { ...request } }).text
  const OPENROUTER = [{ reasoning: { effort: 'high' } }, { usage: { include: true } }]

  it('is where OpenRouter’s clients read it, and comes back unchanged', () => {
    for (const request of OPENROUTER) {
      const said = answered(request)
      assert.equal(said.reasoning, THINKING)
      assert.equal('reasoning_content' in said, false)
      assert.deepEqual(
        objectsIn(said.reasoning_details).map(({ type, text, data, signature }) => [
          type,
          text ?? data,
          signature,
        ]),
        [
          ['reasoning.text', THINKING, 'sig'],
          ['reasoning.encrypted', 'sealed', undefined],
        ],
      )
      const next = chat.translate({ messages: [...ask, said, ...ask] })
      assert.deepEqual(objectsIn(next.messages)[1], { role: 'assistant', content: SAID })
    }
  })

  it('is there in a stream, too', () => {
    for (const request of OPENROUTER) {
      const datas = streamed(request).matchAll(/^data: (\{.*)$/gm)
      const deltas = [...datas]
        .flatMap(([, json = '']) => objectsIn(JSON.parse(json).choices))
        .map(({ delta }) => delta)
      const objects = objectsIn(deltas)
      assert.equal(objects.map(({ reasoning }) => reasoning ?? '').join(''), THINKING)
      const details = objects.flatMap(({ reasoning_details: given }) => objectsIn(given))
      const texts = details.filter(({ text }) => text !== undefined)
      assert.equal(texts.map((detail) => detail.text).join(''), THINKING)
      assert.deepEqual([...new Set(details.map(({ index }) => index))], [0, 1])
      assert.deepEqual(
        details.flatMap(({ signature, data }) => signature ?? data ?? []),
        ['sig', 'sealed'],
      )
      assert.doesNotMatch(streamed(request), /reasoning_content/)
    }
    assert.match(streamed(OPENROUTER[1] ?? {}), /"usage":\{"prompt_tokens"/)
  })

  it('is left out for a caller who wants none', () => {
    const request = { reasoning: { effort: 'high', exclude: true } }
    assert.deepEqual(Object.keys(answered(request)), ['role', 'content', 'refusal'])
    assert.doesNotMatch(streamed(request), /reasoning/)
    assert.equal(completionOf(streamed(request)).message.content, 'Hi')
  })

  it('stays where other clients read it', () => {
    const said = answered({ reasoning_effort: 'high' })
    assert.deepEqual([said.reasoning_content, said.reasoning], [THINKING, undefined])
    assert.equal(completionOf(streamed({})).message.reasoning_content, THINKING)
  })
})

describe('the reasoning of a chat line that is a router', () => {
  const toMessages = translationOf(messages, OPENAI) as Translation
  const answered = (message: JsonObject) =>
    toMessages.answer(
      { choices: [{ message, finish_reason: 'stop' }] },
      {},
      { request: {}, created: 5, estimatedInputTokens: 9 },
    )
  const detail = (members: object) => ({ type: 'reasoning.text', format: 'unknown', index: 0, ...members })

  it('is read from its details if it is nowhere else', () => {
    const details = [
      detail({ text: 'Let me ' }),
      detail({ type: 'reasoning.summary', summary: 'think.', text: 'no' }),
    ]
    const { body, skipped } = answered({ content: 'Hi', reasoning_details: details })
    const [thought = {}] = objectsIn(body.content)
    assert.deepEqual([thought.type, thought.thinking, skipped], ['thinking', THINKING, 0])
    // It goes back in the member that routers know.
    const next = message.translate({
      messages: [...ask, { role: 'assistant', content: body.content }, ...ask],
    })
    assert.deepEqual(objectsIn(next.messages)[1], { role: 'assistant', content: 'Hi', reasoning: THINKING })
  })

  it('is not read twice', () => {
    for (const signed of [detail({ text: THINKING, format, signature: 'sig' }), detail({ text: THINKING })]) {
      const { body } = answered({ content: 'Hi', reasoning: THINKING, reasoning_details: [signed] })
      assert.deepEqual(
        objectsIn(body.content).map((block) => block.thinking ?? block.text),
        [THINKING, 'Hi'],
      )
    }
  })

  it('is found in a stream, in either member or both, once', () => {
    const piece = (words: string, ...members: string[]) =>
      chatChunk({
        ...(members.includes('reasoning') && { reasoning: words }),
        ...(members.includes('details') && { reasoning_details: [detail({ text: words, format })] }),
      })
    const signature = chatChunk({ reasoning_details: [detail({ format, signature: 'sig' })] })
    for (const members of [['reasoning'], ['details'], ['reasoning', 'details']]) {
      const events = [
        ': OPENROUTER PROCESSING\n\n',
        piece('Let me ', ...members),
        piece('think.', ...members),
        ...(members.includes('details') ? [signature] : []),
        chatChunk({ content: 'Hi' }),
        chatChunk({}, 'stop'),
        'data: [DONE]\n\n',
      ]
      const { text: relayed, skipped } = relayTranslated('openai', events.join(''))
      const { content } = messageOf(relayed)
      assert.deepEqual([content[0].thinking, content[1].text, skipped], [THINKING, 'Hi', 0])
      if (members.includes('details')) assert.equal(content[0].signature, 'sig')
    }
  })
})

describe('marks of what to cache, in a message,', () => {
  const asked = {
    system: [text('a'), marked('b')],
    tools: [{ name: 'f', input_schema: { type: 'object' }, cache_control: MARK }],
    messages: [{ role: 'user', content: [marked('c')] }],
  }

  it('are those of the chat for models that read them', () => {
    const made = message.translate(asked, 'anthropic/claude-sonnet-4.6')
    assert.deepEqual(made.messages, [
      { role: 'system', content: [text('a'), marked('b')] },
      { role: 'user', content: [marked('c')] },
    ])
    assert.deepEqual(objectsIn(made.tools)[0]?.cache_control, MARK)
  })

  it('are left out for others', () => {
    const made = message.translate(asked, 'gpt-5')
    assert.ok(isJsonObject(made))
    assert.doesNotMatch(JSON.stringify(made), /cache_control/)
    assert.deepEqual(made.messages, [
      { role: 'system', content: 'a\n\nb' },
      { role: 'user', content: 'c' },
    ])
  })
})
