import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY } from '../../support/gateway.ts'
import {
  chatChunk,
  messageEvent,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'

const PRICE = { inputPerMillion: '1', outputPerMillion: '10' }
const ZERO = { input_tokens: 0, output_tokens: 0 }
const TEXT = { type: 'text', text: 'Once upon a time' }
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'roll', input: { player: 'one' } }
const THOUGHT = { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' }
const SERVER_CALL = {
  type: 'server_tool_use',
  id: 'srvtoolu_1',
  name: 'code_execution',
  input: { code: '1' },
}

const start = (content: readonly object[], members: object = {}): string =>
  messageEvent('message_start', {
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content,
      stop_reason: null,
      stop_sequence: null,
      usage: ZERO,
      ...members,
    },
  })
const stop = messageEvent('message_stop')
const end = (reason: string, usage: object): string[] => [
  messageEvent('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage }),
  stop,
]

interface Form {
  readonly what: string
  readonly events: readonly string[]
  /** The parts that each SDK accumulates: text, names of called tools, finish reason. */
  readonly seen: readonly [text: string, calls: readonly string[], reason: string]
  /** Input and output tokens of the log; undefined: estimated. */
  readonly measured?: readonly [input: number, output: number]
}

const FORMS: readonly Form[] = [
  {
    what: 'a tool call with its stop reason, and no usage but zeros',
    events: [start([CALL], { stop_reason: 'tool_use' }), stop],
    seen: ['', ['roll'], 'tool_use'],
  },
  {
    what: 'a text with its stop reason and usage',
    events: [start([TEXT], { stop_reason: 'end_turn', usage: { input_tokens: 9, output_tokens: 4 } }), stop],
    seen: [TEXT.text, [], 'end_turn'],
    measured: [9, 4],
  },
  {
    what: 'thinking, a text and a tool call, and the end in events of its own',
    events: [start([THOUGHT, TEXT, CALL]), ...end('tool_use', { input_tokens: 9, output_tokens: 14 })],
    seen: [TEXT.text, ['roll'], 'tool_use'],
    measured: [9, 14],
  },
  {
    what: 'a block that later ones follow',
    events: [
      start([TEXT]),
      messageEvent('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
      messageEvent('content_block_delta', { index: 1, delta: { type: 'text_delta', text: ' there was' } }),
      messageEvent('content_block_stop', { index: 1 }),
      ...end('end_turn', { input_tokens: 9, output_tokens: 14 }),
    ],
    seen: [`${TEXT.text} there was`, [], 'end_turn'],
    measured: [9, 14],
  },
  {
    what: 'a call of a server tool, which other protocols lack, before a text',
    events: [start([SERVER_CALL, TEXT]), ...end('end_turn', { input_tokens: 9, output_tokens: 14 })],
    seen: [TEXT.text, [], 'end_turn'],
    measured: [9, 14],
  },
  {
    what: 'a text before the stream ends without a last event',
    events: [start([TEXT], { stop_reason: 'max_tokens' })],
    seen: [TEXT.text, [], 'max_tokens'],
  },
]

const CHAT_REASON: Readonly<Record<string, string>> = {
  tool_use: 'tool_calls',
  end_turn: 'stop',
  max_tokens: 'length',
}

const TOOLS = [{ name: 'roll', input_schema: { type: 'object' as const, properties: {} } }]
const user = [{ role: 'user' as const, content: 'Say something' }]

describe('content in the first event of a stream', () => {
  const cleanUp = cleaningUp()
  let upstream: ScriptedUpstream
  let gateway: AssembledGateway
  let requestId = ''
  /** Millionths of the currency. */
  let spent = 0
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    const line = (id: string, protocol: string) => ({
      id,
      provider: id,
      protocol,
      baseUrl: `${upstream.url}/v1`,
      models: { [id]: 'upstream' },
    })
    gateway = await assembledGateway(
      cleanUp,
      {
        accounts: [
          { id: 'acme', balance: '5' },
          { id: 'other', balance: '7' },
        ],
        keys: [
          { id: 'key_acme', account: 'acme', secret: KEY },
          { id: 'key_other', account: 'other', secret: 'sk-other' },
        ],
        models: ['anthropic', 'openai'].map((id) => ({
          id,
          kind: 'chat',
          maxOutputTokens: 1000,
          price: PRICE,
        })),
        lines: [line('anthropic', 'anthropic'), line('openai', 'openai')],
      },
      { adminToken: 'adm' },
    )
  })

  const noting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    requestId = response.headers.get('x-request-id') ?? ''
    return response
  }
  const openai = () => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0, fetch: noting })
  const anthropic = () => new Anthropic({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0, fetch: noting })

  type Seen = [text: string, calls: string[], reason: string]
  const callers: Readonly<Record<string, (model: string) => Promise<Seen>>> = {
    async chat(model) {
      const tools = TOOLS.map(({ name, input_schema: parameters }) => ({
        type: 'function' as const,
        function: { name, parameters },
      }))
      const answer = await openai()
        .chat.completions.stream({ model, messages: user, tools })
        .finalChatCompletion()
      const { message, finish_reason: reason } = answer.choices[0] ?? assert.fail()
      const calls = (message.tool_calls ?? []).map((call) =>
        call.type === 'function' ? call.function.name : '',
      )
      return [message.content ?? '', calls, reason]
    },
    async messages(model) {
      const { content, stop_reason: reason } = await anthropic()
        .messages.stream({ model, max_tokens: 100, messages: user, tools: TOOLS })
        .finalMessage()
      const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
      return [text, content.flatMap((b) => (b.type === 'tool_use' ? [b.name] : [])), reason ?? '']
    },
    async responses(model) {
      const tools = TOOLS.map(({ name, input_schema: parameters }) => ({
        type: 'function' as const,
        name,
        parameters,
        strict: false,
      }))
      const answer = await openai()
        .responses.stream({ model, input: 'Say something', store: false, tools })
        .finalResponse()
      const calls = answer.output.flatMap((item) => (item.type === 'function_call' ? [item.name] : []))
      return [answer.output_text, calls, answer.status ?? '']
    },
  }

  async function entry(): Promise<CallLogEntry> {
    return gateway.entryOf(new Response(null, { headers: { 'x-request-id': requestId } }))
  }
  async function account(id: string): Promise<{ balance: string; available: string }> {
    const got = await fetch(`${gateway.url}/admin/accounts/${id}`, {
      headers: { authorization: 'Bearer adm' },
    })
    return (await got.json()) as { balance: string; available: string }
  }
  /** The log has this usage of the last call, and its price as the charge. */
  async function assertCharged(measured: Form['measured']): Promise<void> {
    const { usage, billing, error_code: error, request } = await entry()
    assert.equal(error, null)
    assert.ok(usage && usage.output_tokens > 0 && billing?.charged)
    const counts = [usage.input_tokens, usage.output_tokens]
    if (measured) assert.deepEqual([...counts, usage.source], [...measured, 'measured'])
    else assert.deepEqual([counts[0], usage.source], [request?.estimated_input_tokens, 'estimated'])
    const micros = usage.input_tokens + 10 * usage.output_tokens
    assert.equal(Math.round(Number(billing.charged) * 1e6), micros)
    spent += micros
  }

  const reasonOf = (caller: string, reason: string): string => {
    if (caller === 'messages') return reason
    if (caller === 'chat') return CHAT_REASON[reason] ?? ''
    return reason === 'max_tokens' ? 'incomplete' : 'completed'
  }

  for (const { what, events, seen, measured } of FORMS) {
    for (const [caller, ask] of Object.entries(callers)) {
      it(`is relayed and charged: ${what} (${caller})`, async () => {
        upstream.script = (res) => stream(res, events)
        const [text, calls, reason] = await ask('anthropic')
        assert.deepEqual([text, calls, reason], [seen[0], seen[1], reasonOf(caller, seen[2])])
        await assertCharged(measured)
      })
    }
  }

  const role = { role: 'assistant' }
  const toolCalls = [
    { index: 0, id: 'call_1', type: 'function', function: { name: 'roll', arguments: '{"player":"one"}' } },
  ]
  const usage = { usage: { prompt_tokens: 9, completion_tokens: 14, total_tokens: 23 } }
  const CHATS: readonly [what: string, events: string[], text: string, calls: string[], reason: string][] = [
    [
      'a text with its finish reason and usage',
      [chatChunk({ ...role, content: TEXT.text }, 'stop', usage), 'data: [DONE]\n\n'],
      TEXT.text,
      [],
      'end_turn',
    ],
    [
      'a tool call with its finish reason, and usage in the name of Groq',
      [chatChunk({ ...role, tool_calls: toolCalls }, 'tool_calls', { x_groq: usage }), 'data: [DONE]\n\n'],
      '',
      ['roll'],
      'tool_use',
    ],
    [
      'a tool call before zeros of usage',
      [
        chatChunk({ ...role, tool_calls: toolCalls }, null, {
          usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
        }),
        chatChunk({}, 'tool_calls', usage),
        'data: [DONE]\n\n',
      ],
      '',
      ['roll'],
      'tool_use',
    ],
  ]
  for (const [what, events, text, calls, reason] of CHATS) {
    for (const [caller, ask] of Object.entries(callers)) {
      if (caller === 'responses') continue
      it(`is relayed and charged: ${what} (${caller} over a chat line)`, async () => {
        upstream.script = (res) => stream(res, events)
        assert.deepEqual(await ask('openai'), [text, calls, reasonOf(caller, reason)])
        await assertCharged([9, 14])
      })
    }
  }

  const item = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: TEXT.text, annotations: [] }],
  }
  const response = (status: string, output: object[], reported: object | null = null) => ({
    response: { id: 'resp_1', object: 'response', status, output, usage: reported, store: false },
  })
  const COUNTS = { input_tokens: 9, output_tokens: 14, total_tokens: 23 }
  const RESPONSES: readonly [what: string, events: string[]][] = [
    [
      'items that the response begins with',
      [
        messageEvent(
          'response.created',
          response('in_progress', [item], { input_tokens: 0, output_tokens: 0 }),
        ),
        messageEvent('response.in_progress', response('in_progress', [item])),
        messageEvent('response.completed', response('completed', [item], COUNTS)),
      ],
    ],
    [
      'a response that comes whole',
      [
        messageEvent('response.created', response('in_progress', [])),
        messageEvent('response.completed', response('completed', [item], COUNTS)),
      ],
    ],
  ]
  for (const [what, events] of RESPONSES) {
    it(`is relayed and charged: ${what}`, async () => {
      upstream.script = (res) => stream(res, events)
      assert.deepEqual(await callers.responses?.('openai'), [TEXT.text, [], 'completed'])
      await assertCharged([9, 14])
    })
  }

  it('is charged without its end: items that a response began with, once', async () => {
    const events = [
      messageEvent('response.created', response('in_progress', [item])),
      messageEvent('response.in_progress', response('in_progress', [item])),
    ]
    upstream.script = (res) => stream(res, events)
    const got = await gateway.send('/v1/responses', {
      model: 'openai',
      input: 'x',
      store: false,
      stream: true,
    })
    requestId = got.headers.get('x-request-id') ?? ''
    const text = await got.text().catch(() => '')
    assert.equal(got.status, 200, text)
    const { usage: counted, billing } = await entry()
    assert.deepEqual([counted?.output_tokens, counted?.source], [4, 'estimated'])
    spent += Math.round(Number(billing?.charged) * 1e6)
  })

  it('has cost the account what the log says and holds nothing more, and other accounts nothing', async () => {
    const balance = String((5e6 - spent) / 1e6)
    let acme = await account('acme')
    // Unused money returns from the lease after ten seconds.
    for (let tries = 0; tries < 60 && acme.available !== balance; tries++) {
      await delay(500)
      acme = await account('acme')
    }
    assert.deepEqual([acme.balance, acme.available], [balance, balance])
    assert.equal((await account('other')).balance, '7')
  })
})
