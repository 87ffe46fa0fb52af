import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, newTally, objectsIn } from '../../../lib/core/json/index.ts'
import { chatCompletions, messages, responses } from '../../../lib/core/operations/index.ts'
import {
  type Translation,
  translationOf,
  translationsOf,
  UniqueIds,
} from '../../../lib/core/translate/index.ts'
import {
  AnswerIds,
  changedNames,
  chatToolId,
  derivedId,
  plainToolId,
  sealedToolId,
  sealOf,
  toolName,
  UniqueLineIds,
} from '../../../lib/core/translate/tool-ids.ts'
import { ask, chat, message, tool } from './support/requests.ts'
import { relayTranslated } from './support/streams.ts'

const DERIVED = /^call_[0-9a-f]{32}$/

/** Ids of lines that not every protocol accepts. */
const ODD = [
  'x'.repeat(41),
  'call.1',
  'call 1',
  'é😀',
  'a\n',
  'functions.f:0',
  'functions.f:1',
  'a__sealed__b',
  '__-2E_.',
]

describe('the id of a tool call in an answer', () => {
  const given = (id: unknown, request: JsonObject = {}, answerId = 'c') =>
    new AnswerIds(request).idOf(id, answerId, 0)

  it('is that of the line, where every protocol accepts it', () => {
    for (const id of ['a', 'toolu_01-Ab', 'x'.repeat(40)]) assert.equal(given(id), id)
  })

  it('else carries it for the line, in characters that every protocol accepts', () => {
    for (const own of ODD) {
      const id = given(own)
      assert.match(id, /^[a-zA-Z0-9_-]+$/)
      assert.notEqual(id, own)
      assert.equal(chatToolId(id, 'm'), own)
    }
  })

  it('fits into the limits of all protocols, for an id as Kimi makes it', () => {
    assert.ok(given('functions.search_documents:12').length <= 64)
  })

  it('is another one where the conversation has it, or the answer, and carries it', () => {
    const request = { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'call_0' }] }] }
    const ids = new AnswerIds(request)
    const made = [0, 1, 2].map((index) => ids.idOf('call_0', 'c', index))
    assert.equal(new Set([...made, 'call_0']).size, 4)
    assert.deepEqual(
      made.map((id) => chatToolId(id, 'm')),
      ['call_0', 'call_0', 'call_0'],
    )
  })

  it('that carries one is replaced where the conversation has it, and not carried itself', () => {
    const first = given('functions.f:0')
    const request = { input: [{ type: 'function_call', call_id: first }] }
    const second = given(first, request)
    assert.notEqual(second, first)
    assert.equal(chatToolId(second, 'm'), 'functions.f:0')
  })

  it('is derived from the answer and the place of the call, where the line sends none', () => {
    const made = [undefined, '', null, 7].map((id) => given(id, {}, 'chatcmpl-1'))
    assert.deepEqual(new Set(made), new Set([derivedId('chatcmpl-1:0')]))
    const request = { messages: [{ role: 'assistant', tool_calls: [{ id: made[0] }] }] }
    assert.match(given(undefined, request, 'chatcmpl-1'), DERIVED)
    assert.notEqual(given(undefined, request, 'chatcmpl-1'), made[0])
  })

  it('is never longer than the caller’s protocol accepts', () => {
    const request = { messages: [{ role: 'assistant', tool_calls: [{ id: 'toolu_'.padEnd(40, 'x') }] }] }
    const ids = new AnswerIds(request, 40)
    for (const own of ['toolu_'.padEnd(40, 'x'), 'x'.repeat(300), 'x'.repeat(41)])
      assert.ok(ids.idOf(own, 'c', 0).length <= 40)
  })
})

describe('the id of a tool call in a request', () => {
  it('of a caller’s own stays on a chat line, and is derived from it beyond 40 characters', () => {
    for (const id of ['a', 'functions.f:0', 'x'.repeat(40)]) assert.equal(chatToolId(id, 'm'), id)
    for (const id of ['', 'x'.repeat(41)]) assert.equal(chatToolId(id, 'm'), derivedId(id))
  })

  it('that is longer than OpenAI accepts goes to the line that made it only', () => {
    const own = 'chatcmpl-tool-0123456789abcdef0123456789abcdef'
    const id = new AnswerIds({}).idOf(own, 'c', 0)
    assert.equal(chatToolId(id, 'qwen3'), own)
    assert.equal(chatToolId(id, 'openai/gpt-oss-120b'), own)
    for (const model of ['gpt-4o', 'openai/gpt-5', 'o3']) assert.match(chatToolId(id, model), DERIVED)
  })

  it('is used once on an Anthropic-style line, and the same in each turn', () => {
    const ids = UniqueLineIds.forMessages()
    const made = ['call_0', 'call_0', 'functions.f:0', 'functions.f:0', ''].map((id) => {
      ids.beginTurn()
      const line = ids.idOfCall(id)
      assert.equal(ids.idOfResult(id), line)
      return line
    })
    assert.equal(made[0], 'call_0')
    assert.equal(new Set(made).size, made.length)
    for (const id of made) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
    const again = UniqueLineIds.forMessages()
    assert.deepEqual(
      ['call_0', 'call_0'].map((id) => again.idOfCall(id)),
      made.slice(0, 2),
    )
    assert.deepEqual(
      ['call_0', 'call_0'].map((id) => again.idOfResult(id)),
      made.slice(0, 2),
    )
  })

  it('loses on a line of the caller’s own protocol what other lines added', () => {
    const long = new AnswerIds({}).idOf('x'.repeat(60), 'c', 0)
    assert.equal(plainToolId(long), long)
    assert.match(String(plainToolId(long, 64)), DERIVED)
    assert.equal(plainToolId(`${long}__sealed__e30`), long)
    for (const id of ['x'.repeat(99), 7, undefined, null]) assert.equal(plainToolId(id, 64), id)
  })
})

describe('the ids of an answer of an Anthropic-style line for callers of its own protocol', () => {
  const use = (id: string, input: object = {}) => ({ type: 'tool_use', id, name: 'f', input })
  const request = { messages: [{ role: 'assistant', content: [use('call_0')] }] }
  const replaced = (json: JsonObject, text = JSON.stringify(json), ids = UniqueIds.for(messages, request)) =>
    ids?.replaced(json, text)

  it('stay as they are, unless the conversation or the answer has them', () => {
    for (const content of [
      [],
      [use('functions.f:0')],
      [use('x'.repeat(99)), { type: 'text', text: 'call_0' }],
    ])
      assert.equal(replaced({ id: 'm', content }), undefined)
    const made = JSON.parse(replaced({ id: 'm', content: [use('call_0'), use('a'), use('a')] }) ?? '{}')
    const ids = made.content.map(({ id }: { id: string }) => id)
    assert.equal(new Set([...ids, 'call_0']).size, 4)
    assert.equal(ids[1], 'a')
  })

  it('are replaced in each event of a stream that begins a call, and integers stay what they are', () => {
    const ids = UniqueIds.for(messages, request)
    const start = { type: 'message_start', message: { id: 'm', content: [use('call_0')] } }
    assert.match(replaced(start, undefined, ids) ?? '', /"call_[0-9a-f]{6}__for__call_0"/)
    const text =
      '{"type":"content_block_start","content_block":{"type":"tool_use","id":"call_0","input":{"n":12345678901234567890}}}'
    assert.match(replaced(JSON.parse(text), text, ids) ?? '', /"n":12345678901234567890/)
    assert.equal(replaced({ type: 'content_block_delta', delta: {} }, undefined, ids), undefined)
  })

  it('stay as they are in a thread, whose calls the line keeps, and in other protocols', () => {
    assert.equal(UniqueIds.for(messages, { thread: { id: 't' } }), undefined)
    for (const operation of [chatCompletions, responses])
      assert.equal(UniqueIds.for(operation, {}), undefined)
  })
})

const EXTRA = { google: { thought_signature: 'sig+/=' } }
const SEALED = sealedToolId('call_1', EXTRA)

describe('the data that a line wants back with a call', () => {
  it('stands behind the id, and is found there again', () => {
    assert.equal(SEALED, `call_1__sealed__${Buffer.from(JSON.stringify(EXTRA)).toString('base64url')}`)
    assert.deepEqual(sealOf(SEALED, newTally()), { extra_content: EXTRA })
    assert.equal(plainToolId(SEALED), 'call_1')
    assert.deepEqual(sealOf(sealedToolId('', EXTRA), newTally()), { extra_content: EXTRA })
  })

  it('is nothing but an object, and no longer than 64 KiB', () => {
    for (const extra of [undefined, null, 'x', 7, [1]]) assert.equal(sealedToolId('call_1', extra), 'call_1')
    const ofLength = (length: number) => {
      const bytes = (length * 3) / 4
      return sealedToolId('a', { x: 'y'.repeat(bytes - '{"x":""}'.length) })
    }
    assert.equal(ofLength(64 * 1024).length, 'a__sealed__'.length + 64 * 1024)
    assert.equal(ofLength(64 * 1024 + 4), 'a')
  })

  it('is nothing where the id has none, or one that cannot be read', () => {
    for (const id of [
      'call_1',
      '',
      'call_1__sealed__',
      'call_1__sealed__x',
      `call_1__sealed__${btoa('[1]')}`,
    ])
      assert.deepEqual(sealOf(id, newTally()), {})
  })

  it('goes back to the line of a message, and of a response', () => {
    const call = {
      id: 'call_1',
      type: 'function',
      function: { name: 'f', arguments: '{}' },
      extra_content: EXTRA,
    }
    const use = { type: 'tool_use', id: SEALED, name: 'f', input: {} }
    const result = { type: 'tool_result', tool_use_id: SEALED, content: 'done' }
    const expected = [
      ...ask,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ]
    const turns = [...ask, { role: 'assistant', content: [use] }, { role: 'user', content: [result] }]
    assert.deepEqual(message.translate({ messages: turns }).messages, expected)
    const input = [
      ...ask,
      { type: 'function_call', call_id: SEALED, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: SEALED, output: 'done' },
    ]
    const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
    const direction = translationOf(responses, {
      protocol: 'openai',
      endpoints: new Set(['chat/completions']),
    })
    assert.deepEqual(direction?.request({ model: 'm', input }, context).messages, expected)
    const [first] = translationsOf(responses)
    const cleaned = first?.withoutForeign({ input: [...input, { type: 'x', call_id: 'plain' }] }) ?? {}
    assert.deepEqual(
      objectsIn(cleaned.input).map(({ call_id: id }) => id),
      [undefined, 'call_1', 'call_1', 'plain'],
    )
  })
})

describe('the texts that a request is recognized by', () => {
  const recognized = (translation: Translation | undefined, body: JsonObject) =>
    translation?.mayHaveForeign(body, Buffer.from(JSON.stringify(body)))

  it('stand in what only another line accepts, of messages too', () => {
    const [translation] = translationsOf(messages)
    const told = (block: object) => recognized(translation, { messages: [{ content: [block] }] })
    assert.equal(told({ type: 'tool_use', id: SEALED }), true)
    assert.equal(told({ type: 'thinking', signature: 'unsigned:openai-style-line:reasoning' }), true)
    assert.equal(told({ type: 'thinking', signature: 'EqQB' }), false)
  })

  it('stand in what only another line accepts', () => {
    for (const translation of translationsOf(responses)) {
      const told = (body: JsonObject) => recognized(translation, body)
      assert.equal(told({ input: [{ type: 'function_call', call_id: SEALED }] }), true)
      assert.equal(told({ input: [{ type: 'reasoning', id: 'rs_resp_c' }] }), true)
      assert.equal(
        told({
          input: [
            { type: 'reasoning', id: 'rs_1' },
            { type: 'function_call', call_id: 'c' },
          ],
        }),
        false,
      )
    }
  })
})

describe('the name of a tool on a line', () => {
  const HASHED = /^(.*)_([0-9a-f]{8})$/

  it('is as long as the line takes it', () => {
    for (const [most, long] of [
      [undefined, 64],
      [128, 128],
    ] as const) {
      assert.equal(toolName('n'.repeat(long), most), 'n'.repeat(long))
      const [, head, hash] = HASHED.exec(String(toolName('n'.repeat(long + 1), most))) ?? []
      assert.deepEqual([head, hash?.length], ['n'.repeat(long - 9), 8])
    }
  })

  it('is 128 signs at most on an anthropic line', () => {
    const nameOf = (name: string) =>
      (chat.translate({ tools: [tool(name)] }).tools as { name: string }[])[0]?.name
    assert.equal(nameOf('n'.repeat(128)), 'n'.repeat(128))
    assert.match(String(nameOf('n'.repeat(129))), /^n{119}_[0-9a-f]{8}$/)
  })

  it('has an underscore for each sign that the line refuses', () => {
    const [, head] = HASHED.exec(String(toolName('a.b/ü c-D_9'))) ?? []
    assert.equal(head, 'a_b___c-D_9')
    assert.notEqual(toolName('a.b'), toolName('a/b'))
    // The hash stays the same in every version: it stands in conversations.
    assert.equal(toolName('a.b'), 'a_b_2e7336dc')
  })

  it('is left alone where it is none', () => {
    for (const none of ['', undefined, null, 7]) assert.equal(toolName(none), none)
  })

  it('is remembered only where it was changed', () => {
    const names = changedNames(['plain', 'a.b', undefined, ''])
    assert.deepEqual([...names], [[toolName('a.b'), 'a.b']])
  })
})

describe('functions of two namespaces', () => {
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
