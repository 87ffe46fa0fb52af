import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { chatCompletions, messages } from '../../../lib/core/operations/index.ts'
import {
  type Call,
  callsOnAnthropicLine,
  callsOnChatLine,
  tokenOf,
} from '../../core/translate/support/line-calls.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { answerJson, type ScriptedUpstream, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { anthropicOf, openaiOf } from './clients.ts'

/** Lines that number their calls from the start in each turn, and Mistral, which makes and accepts short ids only. */
const LINES = {
  kimi: { protocol: 'openai', idOf: (call: number) => `functions.weather:${call}` },
  counted: { protocol: 'openai', idOf: (call: number) => `call_${call}` },
  claude: { protocol: 'anthropic', idOf: (call: number) => `call_${call}` },
  mistral: { protocol: 'openai', idOf: (call: number, turn: number) => `Mis${turn}tral${call}` },
} as const
type LineName = keyof typeof LINES

/** The line of each turn. */
const TURNS: readonly LineName[] = [
  'kimi',
  'claude',
  'mistral',
  'kimi',
  'counted',
  'mistral',
  'claude',
  'claude',
  'counted',
  'kimi',
  'mistral',
]
const MISTRAL_ID = /^[a-zA-Z0-9]{9}$/
const CALLS = [0, 1]
const PARAMETERS = { type: 'object' as const, properties: { t: { type: 'string' } } }

const callsIn = (line: LineName, { messages: turns }: JsonObject): Call[] =>
  (LINES[line].protocol === 'anthropic' ? callsOnAnthropicLine : callsOnChatLine)(objectsIn(turns))

/** The answers of a line: two calls, whose tokens are the turn and the place. */
function answerOf(line: LineName, turn: number): JsonObject {
  const { protocol, idOf } = LINES[line]
  const made = CALLS.map((call) => ({ id: idOf(call, turn), input: { t: `${turn}.${call}` } }))
  if (protocol === 'anthropic')
    return {
      id: `msg_${turn}`,
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: made.map((one) => ({ type: 'tool_use', name: 'weather', ...one })),
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 5, output_tokens: 5 },
    }
  const calls = made.map(({ id, input }) => ({
    id,
    type: 'function',
    function: { name: 'weather', arguments: JSON.stringify(input) },
  }))
  const message = { role: 'assistant', content: null, tool_calls: calls }
  return {
    id: `chatcmpl-${turn}`,
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'tool_calls', logprobs: null }],
    usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
  }
}

const onLine = (line: LineName) => ({ headers: { 'x-gateway-provider': JSON.stringify({ only: [line] }) } })

/** Runs the turns of a conversation, and returns the calls that the caller got. */
type Conversation = (url: string, isStream: boolean) => Promise<Call[]>

const withAnthropic: Conversation = async (url, isStream) => {
  const client = anthropicOf(url)
  const turns: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather?' }]
  const got: Call[] = []
  for (const line of TURNS) {
    const body = {
      model: 'chat',
      max_tokens: 100,
      messages: turns,
      tools: [{ name: 'weather', input_schema: PARAMETERS }],
    }
    const { content } = isStream
      ? await client.messages.stream(body, onLine(line)).finalMessage()
      : await client.messages.create(body, onLine(line))
    const calls = content.flatMap((one) =>
      one.type === 'tool_use' ? [{ id: one.id, token: tokenOf(one.input) }] : [],
    )
    got.push(...calls)
    const results = calls.map(({ id, token }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: `result of ${token}`,
    }))
    turns.push({ role: 'assistant', content }, { role: 'user', content: results })
  }
  return got
}

const withChat: Conversation = async (url, isStream) => {
  const client = openaiOf(url)
  const turns: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }]
  const got: Call[] = []
  for (const line of TURNS) {
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: PARAMETERS } }]
    const body = { model: 'chat', messages: turns, tools }
    const answer = isStream
      ? await client.chat.completions.stream(body, onLine(line)).finalChatCompletion()
      : await client.chat.completions.create(body, onLine(line))
    const message = answer.choices[0]?.message
    assert.ok(message)
    turns.push(message)
    for (const call of message.tool_calls ?? []) {
      assert.ok(call.type === 'function')
      const token = tokenOf(call.function.arguments)
      got.push({ id: call.id, token })
      turns.push({ role: 'tool', tool_call_id: call.id, content: `result of ${token}` })
    }
  }
  return got
}

/** As Codex does, it inserts what the user says before the results. */
const withResponses: Conversation = async (url, isStream) => {
  const client = openaiOf(url)
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Weather?' }]
  const got: Call[] = []
  for (const line of TURNS) {
    const tools = [{ type: 'function' as const, name: 'weather', parameters: PARAMETERS, strict: false }]
    const body = { model: 'chat', input, tools, store: false }
    const { output } = isStream
      ? await client.responses.stream(body, onLine(line)).finalResponse()
      : await client.responses.create(body, onLine(line))
    const calls = output.flatMap((item) =>
      item.type === 'function_call' ? [{ id: item.call_id, token: tokenOf(item.arguments) }] : [],
    )
    got.push(...calls)
    input.push(...(output as OpenAI.Responses.ResponseInput), { role: 'user', content: 'Hurry.' })
    for (const { id, token } of calls)
      input.push({ type: 'function_call_output', call_id: id, output: `result of ${token}` })
  }
  return got
}

const turnOf = (call: number): LineName | undefined => TURNS[Math.floor(call / CALLS.length)]

describe('a conversation with tools over lines that number their calls from the start, and Mistral', () => {
  const upstreams = new Map<LineName, ScriptedUpstream>()
  const cleanUp = cleaningUp()
  let gateway: TestGateway
  before(async () => {
    for (const line of Object.keys(LINES) as LineName[]) {
      const form = (LINES[line].protocol === 'anthropic' ? messages : chatCompletions).answerForm
      const upstream = await startUpstream((res, { json }) => {
        const assistants = objectsIn((json as unknown as JsonObject).messages).filter(
          ({ role }) => role === 'assistant',
        )
        const answer = answerOf(line, assistants.length)
        if (json.stream) stream(res, [form?.toStream(answer) ?? ''])
        else answerJson(res, 200, answer)
      })
      cleanUp.after(() => upstream.close())
      upstreams.set(line, upstream)
    }
    gateway = await startGateway({
      lines: [...upstreams].map(([id, { url }]) => ({
        url,
        id,
        provider: id,
        protocol: LINES[id].protocol,
        ...(LINES[id].protocol === 'openai' && { endpoints: ['chat/completions'] }),
      })),
    })
    cleanUp.after(() => gateway.close())
  })

  const CALLERS = { Anthropic: withAnthropic, 'OpenAI chat': withChat, 'OpenAI responses': withResponses }
  for (const [name, converse] of Object.entries(CALLERS)) {
    for (const isStream of [false, true]) {
      it(`works with the ${name} SDK, ${isStream ? 'streamed' : 'plain'}`, async () => {
        for (const { requests } of upstreams.values()) requests.length = 0
        const got = await converse(gateway.url, isStream)
        const tokens = TURNS.flatMap((_, turn) => CALLS.map((call) => `${turn}.${call}`))
        assert.deepEqual(
          got.map(({ token }) => token),
          tokens,
        )
        // A chat may have the ids of earlier turns again. Its own line's answers pass as they are.
        if (converse !== withChat) assert.equal(new Set(got.map(({ id }) => id)).size, got.length)
        if (converse === withAnthropic) for (const { id } of got) assert.match(id, /^[a-zA-Z0-9_-]+$/)
        const idsOfMistral: string[][] = []
        for (const [line, { requests }] of upstreams) {
          assert.equal(requests.length, TURNS.filter((one) => one === line).length)
          for (const { json } of requests) {
            const seen = callsIn(line, json as unknown as JsonObject)
            assert.deepEqual(
              seen.map(({ token }) => token),
              tokens.slice(0, seen.length),
            )
            if (LINES[line].protocol !== 'openai') continue
            for (const [i, { id }] of seen.entries())
              if (turnOf(i) === line)
                assert.equal(
                  id,
                  LINES[line].idOf(i % CALLS.length, Math.floor(i / CALLS.length)),
                  'the line gets its own id',
                )
            if (line === 'mistral') idsOfMistral.push(seen.map(({ id }) => id))
          }
        }
        const last = idsOfMistral.at(-1) ?? []
        assert.equal(new Set(last).size, last.length)
        for (const id of last) assert.match(id, MISTRAL_ID)
        for (const ids of idsOfMistral) assert.deepEqual(ids, last.slice(0, ids.length), 'over the turns')
      })
    }
  }
})
