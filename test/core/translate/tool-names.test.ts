import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { chatCompletions, messages, responses } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import type { Translation } from '../../../lib/core/translate/translation.ts'
import { relayTranslated } from './relayed.ts'

const LONG = `mcp__plugin_playwright_playwright__${'browser_take_screenshot_'.repeat(3)}`
/** Both begin alike, so that a cut alone would make them one. */
const LIKE = [`${LONG}of_a`, `${LONG}of_b`]
const ODD = 'files.read'
const NAMES = ['plain', ...LIKE, ODD]

const translation = (from: typeof messages, protocol: 'openai' | 'anthropic'): Translation => {
  const found = translationOf(from, { protocol })
  assert.ok(found)
  return found
}
const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
const answered = (request: JsonObject) => ({ request, created: 5, estimatedInputTokens: 0 })

/** How each caller writes its tools, an earlier call and a choice, and where it finds the name of a call. */
interface Caller {
  readonly name: string
  readonly direction: Translation
  readonly line: 'openai' | 'anthropic'
  readonly most: number
  request(tools: readonly string[], called: string): JsonObject
  calledIn(body: JsonObject): unknown
}

const ask = { role: 'user', content: 'hi' }
const parameters = { type: 'object', properties: {} }
const functions = (tools: readonly string[]) =>
  tools.map((name) => ({ type: 'function', function: { name, parameters } }))
const callOf = (name: unknown) => ({ id: 'call_1', type: 'function', function: { name, arguments: '{}' } })

const responsesRequest = (tools: readonly string[], called: string): JsonObject => ({
  model: 'm',
  tools: tools.map((name) => ({ type: 'function', name, parameters, strict: false })),
  tool_choice: { type: 'function', name: called },
  input: [
    ask,
    { type: 'function_call', call_id: 'call_1', name: called, arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  ],
})

const CALLERS: readonly Caller[] = [
  {
    name: 'messages',
    direction: translation(messages, 'openai'),
    line: 'openai',
    most: 64,
    request: (tools, called) => ({
      model: 'm',
      max_tokens: 100,
      tools: tools.map((name) => ({ name, input_schema: parameters })),
      tool_choice: { type: 'tool', name: called },
      messages: [
        ask,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: called, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'done' }] },
      ],
    }),
    calledIn: ({ content }) => objectsIn(content)[0]?.name,
  },
  {
    name: 'chat',
    direction: translation(chatCompletions, 'anthropic'),
    line: 'anthropic',
    most: 128,
    request: (tools, called) => ({
      model: 'm',
      tools: functions(tools),
      tool_choice: { type: 'function', function: { name: called } },
      messages: [
        ask,
        { role: 'assistant', content: null, tool_calls: [callOf(called)] },
        { role: 'tool', tool_call_id: 'call_1', content: 'done' },
      ],
    }),
    calledIn: ({ choices }) => {
      const [choice] = objectsIn(choices)
      const message = isJsonObject(choice?.message) ? choice.message : {}
      const [call] = objectsIn(message.tool_calls)
      return isJsonObject(call?.function) && call.function.name
    },
  },
  ...(['openai', 'anthropic'] as const).map(
    (line): Caller => ({
      name: `responses on an ${line} line`,
      direction: translation(responses, line),
      line,
      most: 64,
      request: responsesRequest,
      calledIn: ({ output }) => objectsIn(output)[0]?.name,
    }),
  ),
]

/** The names of the tools, of the choice, and of the earlier call, as the line gets them. */
function namesOnLine(body: JsonObject): { tools: unknown[]; chosen: unknown; called: unknown } {
  const fn = (value: unknown): unknown => (isJsonObject(value) ? value.name : undefined)
  const choice = isJsonObject(body.tool_choice) ? body.tool_choice : {}
  const earlier = objectsIn(body.messages).find(({ role }) => role === 'assistant')
  const [call] = objectsIn(earlier?.tool_calls)
  const [use] = objectsIn(earlier?.content)
  return {
    tools: objectsIn(body.tools).map((tool) => fn(tool.function) ?? tool.name),
    chosen: fn(choice.function) ?? choice.name,
    called: fn(call?.function) ?? use?.name,
  }
}

const answerOf = (line: Caller['line'], name: unknown): JsonObject =>
  line === 'openai'
    ? {
        id: 'c',
        choices: [{ message: { content: null, tool_calls: [callOf(name)] }, finish_reason: 'tool_calls' }],
      }
    : {
        id: 'm',
        content: [{ type: 'tool_use', id: 'call_1', name, input: {} }],
        stop_reason: 'tool_use',
      }

const sse = (event: JsonObject): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

const streamOf = (line: Caller['line'], name: unknown): string => {
  if (line === 'openai') {
    const chunk = (delta: object, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    const call = { index: 0, ...callOf(name) }
    return `${chunk({ tool_calls: [call] })}${chunk({}, 'tool_calls')}data: [DONE]\n\n`
  }
  const use = { type: 'tool_use', id: 'call_1', name, input: {} }
  return [
    { type: 'message_start', message: { id: 'm', model: 'm', content: [], usage: {} } },
    { type: 'content_block_start', index: 0, content_block: use },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ]
    .map(sse)
    .join('')
}

for (const { name, direction, line, most, request, calledIn } of CALLERS) {
  describe(`the names of tools, from ${name}`, () => {
    for (const called of NAMES) {
      const given = request(NAMES, called)
      const made = namesOnLine(direction.request(given, context))

      it(`fit the line where ${called.slice(0, 10)}… is called`, () => {
        for (const tool of made.tools) assert.match(String(tool), new RegExp(`^[a-zA-Z0-9_-]{1,${most}}$`))
        assert.equal(new Set(made.tools).size, NAMES.length)
        assert.equal(made.tools[0], 'plain')
      })

      it(`are the same in the choice, in an earlier call and in the next turn (${called.slice(-10)})`, () => {
        const onLine = made.tools[NAMES.indexOf(called)]
        assert.deepEqual([made.chosen, made.called], [onLine, onLine])
        const next = direction.request(request([called, 'other'], called), context)
        assert.equal(namesOnLine(next).tools[0], onLine)
      })

      it(`are the caller’s own in an answer and in a stream (${called.slice(-10)})`, () => {
        const onLine = made.tools[NAMES.indexOf(called)]
        const { body } = direction.answer(answerOf(line, onLine), {}, answered(given))
        assert.equal(calledIn(body), called)
        const { text, end } = relayTranslated(line, streamOf(line, onLine), {
          passage: direction,
          request: given,
        })
        assert.equal(end, 'complete')
        assert.ok(text.includes(`"name":"${called}"`), text)
        if (onLine !== called) assert.ok(!text.includes(`"name":"${onLine}"`), text)
      })
    }
  })
}

describe('functions of two namespaces', () => {
  it('stay two where their whole names are too long for a chat', () => {
    const spaces = ['a', 'b'].map((end) => ({
      type: 'namespace',
      name: `${'mcp__company_knowledge_base_'.repeat(2)}${end}`,
      description: 'Others.',
      tools: [{ type: 'function', name: 'search_documents', parameters, strict: false }],
    }))
    const given = { model: 'm', input: 'hi', tools: spaces }
    const direction = translation(responses, 'openai')
    const { tools } = namesOnLine(direction.request(given, context))
    assert.equal(new Set(tools).size, 2)
    for (const [i, tool] of tools.entries()) {
      assert.ok(String(tool).length <= 64)
      const { body } = direction.answer(answerOf('openai', tool), {}, answered(given))
      const [call] = objectsIn(body.output)
      assert.deepEqual([call?.name, call?.namespace], ['search_documents', spaces[i]?.name])
    }
  })
})
