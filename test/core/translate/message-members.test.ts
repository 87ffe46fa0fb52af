import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Body, message } from './requests.ts'

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
      { reasoning_effort: 'high' },
    ],
    ['no thinking', { thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, {}],
    ['what is neutral', { mcp_servers: [], container: null, top_k: null }, {}],
    [
      'what makes nothing other',
      { cache_control: { type: 'ephemeral' }, speed: 'fast', context_management: { edits: [] } },
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

  it('is translated: no effort for a model that reasons untold, and takes no functions then', () => {
    assert.equal(message.translate({ tools: [tool('f')] }, 'gpt-5.6').reasoning_effort, 'none')
    assert.equal(message.translate({}, 'gpt-5.6').reasoning_effort, undefined)
  })

  const REFUSED: [member: string, given: Body][] = [
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
