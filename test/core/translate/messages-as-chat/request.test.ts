import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responsesAsChat } from '../../../../lib/core/translate/directions.ts'
import { isStrict } from '../../../../lib/core/translate/openai-models.ts'
import { type Body, message } from '../support/requests.ts'

const schema = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}
const loose = { type: 'object', properties: { list: { type: 'array', items: { type: 'object' } } } }

const formatted = (of: object, strict: boolean) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: of, strict } },
})

describe('a member of a message request', () => {
  const ROWS: [what: string, given: Body, made: Body][] = [
    ['max_tokens', { max_tokens: 7 }, { max_tokens: 7 }],
    ['temperature and top_p', { temperature: 1, top_p: 0.3 }, { temperature: 1, top_p: 0.3 }],
    ['stop_sequences', { stop_sequences: ['a', 'b', 'c', 'd'] }, { stop: ['a', 'b', 'c', 'd'] }],
    ['no stop sequence', { stop_sequences: [] }, {}],
    ['metadata.user_id', { metadata: { user_id: 'u1' } }, { user: 'u1' }],
    ['service_tier auto', { service_tier: 'auto' }, { service_tier: 'auto' }],
    ['service_tier standard_only', { service_tier: 'standard_only' }, { service_tier: 'default' }],
    ['stream', { stream: true }, { stream: true }],
    [
      'a schema that OpenAI can promise',
      { output_config: { format: { type: 'json_schema', schema } } },
      formatted(schema, true),
    ],
    [
      'another schema',
      { output_config: { format: { type: 'json_schema', schema: loose } } },
      formatted(loose, false),
    ],
    [
      'a format under its earlier name',
      { output_format: { type: 'json_schema', schema } },
      formatted(schema, true),
    ],
    [
      'a thinking budget under a third',
      { max_tokens: 9000, thinking: budget(2000) },
      { max_tokens: 9000, reasoning_effort: 'low' },
    ],
    [
      'a thinking budget of a half',
      { max_tokens: 9000, thinking: budget(4500) },
      { max_tokens: 9000, reasoning_effort: 'medium' },
    ],
    [
      'a thinking budget over two thirds',
      { max_tokens: 9000, thinking: budget(8000) },
      { max_tokens: 9000, reasoning_effort: 'high' },
    ],
    ['thinking that the model decides on', { thinking: { type: 'adaptive' } }, {}],
    [
      '… with an effort',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } },
      { reasoning_effort: 'medium' },
    ],
    [
      'an effort before a budget',
      { thinking: budget(1024), output_config: { effort: 'max' } },
      { reasoning_effort: 'max' },
    ],
    ['no thinking', { thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, {}],
    ['what is neutral', { mcp_servers: [], container: null, top_k: null }, {}],
    [
      'what makes nothing other',
      { cache_control: { type: 'ephemeral' }, speed: 'standard', context_management: { edits: [] } },
      {},
    ],
  ]
  for (const [what, given, made] of ROWS) {
    it(`is translated: ${what}`, () => {
      const expected = {
        model: 'chat',
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: 100,
        ...made,
      }
      assert.deepEqual(message.translate(given), expected)
    })
  }

  it('is translated: a long user id, to the same short one each time', () => {
    const metadata = { user_id: `user_${'a'.repeat(64)}_account__session_1` }
    const { user } = message.translate({ metadata })
    assert.match(String(user), /^[0-9a-f]{64}$/)
    assert.equal(message.translate({ metadata }).user, user)
  })

  for (const model of ['o3', 'o4-mini-2025-04-16', 'gpt-5', 'gpt-5.1-codex', 'openai/gpt-5-mini']) {
    it(`is translated: the limit for ${model}, which takes no temperature`, () => {
      const { max_completion_tokens, max_tokens, temperature, top_p } = message.translate(
        { temperature: 1, top_p: 1 },
        model,
      )
      assert.deepEqual(
        [max_completion_tokens, max_tokens, temperature, top_p],
        [100, undefined, undefined, undefined],
      )
    })
  }

  for (const model of [
    'gpt-4o',
    'gpt-4.1',
    'gpt-3.5-turbo',
    'gpt-oss-120b',
    'deepseek-chat',
    'olmo-2',
    'qwen3-8b',
  ]) {
    it(`is translated: the limit for ${model}`, () => {
      const { max_completion_tokens, max_tokens, temperature } = message.translate({ temperature: 1 }, model)
      assert.deepEqual([max_completion_tokens, max_tokens, temperature], [undefined, 100, 1])
    })
  }

  const EFFORTS: [model: string, plain: string | undefined, withFunctions: string | undefined][] = [
    ['gpt-4o', undefined, undefined],
    ['gpt-4.1-mini', undefined, undefined],
    ['openai/gpt-3.5-turbo', undefined, undefined],
    ['gpt-5-chat-latest', undefined, undefined],
    ['o3', 'high', 'high'],
    ['gpt-5', 'high', 'high'],
    ['gpt-5.1', 'high', 'high'],
    ['gpt-5.4-mini', 'high', 'none'],
    ['gpt-5.6', 'high', 'none'],
    ['gpt-oss-120b', 'high', 'high'],
    ['openai/gpt-5.4', 'high', 'high'],
    ['gpt-5.40', 'high', 'none'],
    ['gpt-5.400', 'high', 'high'],
    ['other', 'high', 'high'],
  ]
  for (const [model, plain, withFunctions] of EFFORTS) {
    it(`is translated: the effort for ${model}`, () => {
      const asked = { output_config: { effort: 'high' } }
      const efforts = [asked, { ...asked, tools: [tool('f')] }].map(
        (given) => message.translate(given, model).reasoning_effort,
      )
      assert.deepEqual(efforts, [plain, withFunctions])
    })
  }

  it('is translated: the effort "none" beside functions, for a model that reasons by default', () => {
    assert.equal(message.translate({ tools: [tool('f')] }, 'gpt-5.6').reasoning_effort, 'none')
    assert.equal(message.translate({}, 'gpt-5.6').reasoning_effort, undefined)
  })

  const REFUSED: [member: string, given: Body][] = [
    ['speed', { speed: 'fast' }],
    ['service_tier', { service_tier: 'batch' }],
    ['max_tokens', { max_tokens: 0 }],
    ['top_k', { top_k: 5 }],
    ['stop_sequences', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }],
    ['container', { container: 'container_1' }],
    ['inference_geo', { inference_geo: 'us' }],
    ['mcp_servers', { mcp_servers: [{ type: 'url', url: 'https://example.com', name: 'm' }] }],
    ['output_config.format', { output_config: { format: { type: 'grammar' } } }],
    ['tools[0]', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
    ['tools[1]', { tools: [tool('f'), { type: 'bash_20250124', name: 'bash' }] }],
    ['tool_choice', { tools: [tool('f')], tool_choice: { type: 'other' } }],
    ['frequency_penalty', { frequency_penalty: 0.5 }],
  ]
  it('is refused: stop sequences for a reasoning model', () => {
    const given = { stop_sequences: ['END'] }
    for (const model of ['o3', 'gpt-5', 'gpt-5.1', 'gpt-5.3-chat'])
      assert.equal(message.refusedMember(given, model), 'stop_sequences')
    assert.equal(message.translate({ stop_sequences: [] }, 'o3').stop, undefined)
    for (const model of ['gpt-4o', 'gpt-5-chat-latest', 'openai/gpt-5-chat'])
      assert.deepEqual(message.translate(given, model).stop, ['END'])
    assert.equal(message.translate({ temperature: 0.3 }, 'gpt-5-chat').temperature, 0.3)
  })

  for (const [member, given] of REFUSED) {
    it(`is refused: ${member} of ${JSON.stringify(given)}`, () => {
      assert.equal(message.refusedMember(given), member)
    })
  }
})

describe('the tools of a message request', () => {
  it('are described in OpenAI’s words', () => {
    const { tools } = message.translate({
      tools: [
        {
          name: 'f',
          description: 'does',
          input_schema: schema,
          strict: true,
          cache_control: { type: 'ephemeral' },
        },
        { type: 'custom', name: 'g', input_schema: { type: 'object' }, input_examples: [{}] },
      ],
    })
    assert.deepEqual(tools, [
      { type: 'function', function: { name: 'f', description: 'does', parameters: schema, strict: true } },
      { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } },
    ])
  })

  it('have the empty members that OpenAI demands, at every depth', () => {
    const list = { type: 'array', description: 'some' }
    const input_schema = {
      type: 'object',
      properties: {
        type: { type: 'string', default: { type: 'array' } },
        list,
        nullable: { type: ['array', 'null'] },
        lists: { type: 'array', items: { anyOf: [list, { $ref: '#/$defs/pair' }] } },
        any: true,
        map: { type: 'object', additionalProperties: list },
      },
      required: ['list'],
      $defs: { pair: { type: 'array', prefixItems: [list, { type: 'string' }] } },
    }
    const { tools } = message.translate({ tools: [{ name: 'f', input_schema }] })
    const whole = { ...list, items: {} }
    const parameters = {
      ...input_schema,
      properties: {
        ...input_schema.properties,
        list: whole,
        nullable: { type: ['array', 'null'], items: {} },
        lists: { type: 'array', items: { anyOf: [whole, { $ref: '#/$defs/pair' }] } },
        map: { type: 'object', additionalProperties: whole },
      },
      $defs: { pair: { type: 'array', prefixItems: [whole, { type: 'string' }], items: {} } },
    }
    assert.deepEqual(tools, [{ type: 'function', function: { name: 'f', parameters } }])
  })

  const CHOICES: [given: Body | undefined, choice: unknown, parallel: unknown][] = [
    [undefined, undefined, undefined],
    [{ type: 'auto' }, 'auto', undefined],
    [{ type: 'none' }, 'none', undefined],
    [{ type: 'any' }, 'required', undefined],
    [{ type: 'tool', name: 'g' }, { type: 'function', function: { name: 'g' } }, undefined],
    [{ type: 'any', disable_parallel_tool_use: true }, 'required', false],
  ]
  for (const [given, choice, parallel] of CHOICES) {
    it(`are chosen by ${JSON.stringify(given)}`, () => {
      const { tool_choice, parallel_tool_calls } = message.translate({
        tools: [tool('f')],
        tool_choice: given,
      })
      assert.deepEqual([tool_choice, parallel_tool_calls], [choice, parallel])
    })
  }
})

function budget(budget_tokens: number) {
  return { type: 'enabled', budget_tokens }
}

function tool(name: string) {
  return { name, input_schema: { type: 'object' } }
}

const names = (prefix: string, length: number) => Array.from({ length }, (_, i) => `${prefix}${i}`)
const closed = (properties: readonly string[], required: readonly string[]) => ({
  type: 'object',
  properties: Object.fromEntries(properties.map((name) => [name, { type: 'string' }])),
  required,
  additionalProperties: false,
})

describe('a strict schema', () => {
  it('requires all its properties, and nothing else', () => {
    const own = names('p', 1000)
    assert.equal(isStrict(closed(own, own)), true)
    assert.equal(isStrict(closed(own, own.toReversed())), true)
    assert.equal(isStrict(closed(own, own.slice(1))), false)
    assert.equal(isStrict(closed(own, [...own.slice(1), 'p1'])), false)
    assert.equal(isStrict(closed(own, [...names('q', 10_000), ...own])), false)
    assert.equal(isStrict({ type: 'array', items: closed(own, []) }), false)
  })

  const NO_STRINGS = { additionalProperties: false }
  const ROWS: [schema: unknown, strict: boolean][] = [
    [{ type: 'object', required: [], ...NO_STRINGS }, true],
    [{ type: 'object', ...NO_STRINGS }, true],
    [{ type: 'object', properties: {}, required: 'a', ...NO_STRINGS }, true],
    [{ type: 'object', required: ['a'], ...NO_STRINGS }, false],
    [{ type: 'object' }, false],
    [{ properties: {} }, false],
    [{ properties: { a: { type: 'null' } }, required: ['a'], ...NO_STRINGS }, true],
    [{ properties: { a: {} }, required: ['a'], additionalProperties: true }, false],
    [{ anyOf: [{ type: 'string' }, { type: 'object' }] }, false],
    [{ anyOf: [{ type: 'string' }, closed(['a'], ['a'])] }, true],
    [{ $defs: { a: { type: 'object' } } }, false],
    [{ type: 'string' }, true],
    [undefined, true],
  ]
  for (const [schema, strict] of ROWS)
    it(`is ${strict ? '' : 'not '}${JSON.stringify(schema)}`, () => assert.equal(isStrict(schema), strict))

  it('is at most 100 levels deep, in lists too', () => {
    const nested = (levels: number, wrap: (inner: unknown) => unknown) => {
      let schema: unknown = { type: 'null' }
      for (let i = 0; i < levels; i++) schema = wrap(schema)
      return schema
    }
    for (const [most, wrap] of [
      [99, (items: unknown) => ({ items })],
      [49, (inner: unknown) => ({ anyOf: [inner] })],
    ] as const) {
      assert.equal(isStrict(nested(most, wrap)), true)
      assert.equal(isStrict(nested(most + 1, wrap)), false)
    }
  })
})

describe('the user of Claude Code on an OpenAI-style line', () => {
  it('is the same in each session', () => {
    const device = 'a'.repeat(64)
    const userIn = (user_id: string) => message.translate({ metadata: { user_id } }).user
    const sessions = ['0b2a5d3c-1111-4222-8333-944455566677', '0b2a5d3c-1111-4222-8333-944455566678']
    const users = sessions.flatMap((session) => [
      userIn(`user_${device}_account__session_${session}`),
      userIn(JSON.stringify({ device_id: device, account_uuid: '', session_id: session })),
    ])
    assert.match(String(users[0]), /^[0-9a-f]{64}$/)
    assert.equal(new Set(users).size, 1)
    assert.notEqual(userIn(`user_${'b'.repeat(64)}_account__session_${sessions[0]}`), users[0])
  })
})

const ofMessage = (model: string) =>
  message.translate({ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }, model)
const ofResponse = (upstreamModel: string) =>
  responsesAsChat.request(
    { model: 'm', input: 'hi', reasoning: { effort: 'medium' } },
    { upstreamModel, defaultMaxTokens: 100 },
  )

describe('the effort that Claude Code and Codex always ask for', () => {
  for (const model of [
    'llama-3.3-70b-versatile',
    'meta-llama/llama-4-scout-17b-16e-instruct',
    'meta-llama/Llama-3.3-70B-Instruct-Turbo',
    'llama3.3:70b',
    'mixtral-8x7b-32768',
    'gemma2-9b-it',
    'gemma3:27b',
    'grok-3',
    'grok-4',
    'grok-4-0709',
    'grok-4-1-fast-reasoning',
    'x-ai/grok-4.20-0309-reasoning',
    'grok-code-fast-1',
  ]) {
    it(`is not sent to ${model}, which refuses any`, () => {
      assert.equal(ofMessage(model).reasoning_effort, undefined)
      assert.equal(ofResponse(model).reasoning_effort, undefined)
    })
  }

  for (const model of [
    'openai/gpt-oss-120b',
    'gpt-oss:20b',
    'deepseek-r1-distill-llama-70b',
    'gemma4:12b',
    'grok-3-mini',
    'grok-4.3',
    'grok-4.20-multi-agent-0309',
    'grok-4.7',
    'grok-5',
    'gemini-3-pro',
    'qwen3-235b',
  ]) {
    it(`is sent to ${model}`, () => {
      assert.equal(ofMessage(model).reasoning_effort, 'medium')
      assert.equal(ofResponse(model).reasoning_effort, 'medium')
    })
  }
})
