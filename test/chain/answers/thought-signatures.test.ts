import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { dataOf, readExchange } from '../../support/exchange.ts'
import { startGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatChunk,
  messageAnswer,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'

const SIGNATURE = `CvcQ+/${'A'.repeat(300)}==`
const EXTRA = { google: { thought_signature: SIGNATURE } }
const fn = (city: string) => ({ name: 'weather', arguments: JSON.stringify({ city }) })
const CALLS = [
  { id: 'function-call-1', type: 'function', function: fn('Oslo'), extra_content: EXTRA },
  { id: 'function-call-2', type: 'function', function: fn('Rome') },
]

// biome-ignore lint/suspicious/noExplicitAny: answers are read freely here
type Json = any

/** How the callers of an endpoint go through a loop with a tool. */
interface Loop {
  readonly path: string
  readonly question: object
  /** The next request, with the answer as it came and the results of its calls. */
  next(answer: Json): object
  /** The answer of a stream. */
  ofStream(text: string): Json
}

const question = { role: 'user', content: 'Where is it warmer?' }
const tool = { name: 'weather', description: 'x' }
const parameters = { type: 'object', properties: { city: { type: 'string' } } }

const CHAT: Loop = {
  path: '/v1/chat/completions',
  question: { messages: [question], tools: [{ type: 'function', function: { ...tool, parameters } }] },
  next: ({ choices: [{ message }] }) => ({
    messages: [
      question,
      message,
      ...message.tool_calls.map(({ id }: Json) => ({
        role: 'tool',
        tool_call_id: id,
        content: '20 degrees',
      })),
    ],
  }),
  ofStream: (text) => {
    const deltas = dataOf(text).flatMap(({ choices }: Json) => choices?.[0]?.delta?.tool_calls ?? [])
    return {
      choices: [
        { message: { role: 'assistant', tool_calls: deltas.map(({ index: _, ...call }: Json) => call) } },
      ],
    }
  },
}
const MESSAGES: Loop = {
  path: '/v1/messages',
  question: { max_tokens: 100, messages: [question], tools: [{ ...tool, input_schema: parameters }] },
  next: ({ content }) => ({
    messages: [
      question,
      { role: 'assistant', content },
      {
        role: 'user',
        content: content
          .filter(({ type }: Json) => type === 'tool_use')
          .map(({ id }: Json) => ({ type: 'tool_result', tool_use_id: id, content: '20 degrees' })),
      },
    ],
  }),
  ofStream: (text) => {
    const events: Json[] = dataOf(text)
    const content = events.flatMap(({ content_block: block }) => block ?? [])
    for (const { index, delta } of events)
      if (delta?.partial_json) content[index].input = JSON.parse(delta.partial_json)
    return { content }
  },
}
const RESPONSES: Loop = {
  path: '/v1/responses',
  question: { store: false, input: [question], tools: [{ type: 'function', ...tool, parameters }] },
  next: ({ output }) => ({
    input: [
      question,
      ...output,
      ...output.map(({ call_id }: Json) => ({ type: 'function_call_output', call_id, output: '20 degrees' })),
    ],
  }),
  ofStream: (text) => (dataOf(text).at(-1) as Json).response,
}

describe('Gemini’s thought signatures come back to it over a tool loop', async () => {
  const cleanUp = cleaningUp()
  const gemini = await startUpstream((res, { json }) => {
    const isResult = JSON.stringify(json.messages).includes('degrees')
    if (isResult) return chatAnswer(res, 'Rome')
    if (!json.stream) {
      const message = { role: 'assistant', content: null, tool_calls: CALLS }
      return chatAnswer(res, '', { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    }
    const chunks = CALLS.map((call, index) =>
      chatChunk({ role: 'assistant', tool_calls: [{ index, ...call }] }),
    )
    return stream(res, [...chunks, chatChunk({}, 'tool_calls'), 'data: [DONE]\n\n'])
  })
  cleanUp.after(() => gemini.close())
  const claude = await startUpstream((res) => messageAnswer(res, 'Rome'))
  cleanUp.after(() => claude.close())
  const native = await startUpstream((res) => answerJson(res, 200, { output: [], status: 'incomplete' }))
  cleanUp.after(() => native.close())
  const gateway = await startGateway({
    config: {
      models: ['chat', 'claude', 'native', 'claude-only', 'native-only'].map((id) => ({ id, kind: 'chat' })),
    },
    lines: [
      {
        url: gemini.url,
        endpoints: ['chat/completions'],
        models: { chat: 'gemini', claude: 'gemini', native: 'gemini' },
        priority: 5,
      },
      { url: claude.url, protocol: 'anthropic', models: { claude: 'claude', 'claude-only': 'claude' } },
      { url: native.url, models: { native: 'gpt', 'native-only': 'gpt' } },
    ],
  })
  cleanUp.after(() => gateway.close())

  const ask = async ({ path, ofStream }: Loop, body: object, streamed: boolean, model = 'chat') => {
    const got = await readExchange(await gateway.post(path, { model, ...body, stream: streamed }))
    assert.equal(got.status, 200, got.text)
    return streamed ? ofStream(got.text) : got.json
  }
  const sentTo = ({ requests }: typeof gemini): Json => requests.at(-1)?.json

  for (const loop of [CHAT, MESSAGES, RESPONSES]) {
    for (const streamed of [false, true]) {
      it(`${loop.path}, ${streamed ? 'streamed' : 'plain'}`, async () => {
        const answer = await ask(loop, loop.question, streamed)
        await ask(loop, { ...loop.question, ...loop.next(answer) }, false)
        const { messages } = sentTo(gemini)
        const [, assistant, ...results] = messages
        assert.deepEqual(assistant.tool_calls, CALLS)
        assert.deepEqual(
          results.map(({ tool_call_id: id }: Json) => id),
          CALLS.map(({ id }) => id),
        )
      })
    }
  }

  it('and lines of the caller’s own protocol get the plain ids, those of another model too', async () => {
    const rows: readonly (readonly [Loop, string, typeof gemini])[] = [
      [MESSAGES, 'claude', claude],
      [MESSAGES, 'claude-only', claude],
      [RESPONSES, 'native', native],
      [RESPONSES, 'native-only', native],
    ]
    for (const [loop, model, upstream] of rows) {
      const next = loop.next(await ask(loop, loop.question, false))
      await ask(loop, { ...loop.question, ...next }, false, model)
      const sent = JSON.stringify(sentTo(upstream))
      assert.equal(sent.split('"function-call-1"').length, 3, sent)
      assert.doesNotMatch(sent, /sealed/)
    }
  })
})
