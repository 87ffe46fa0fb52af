import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import { chatCompletions } from '../../../../lib/core/operations/index.ts'
import { translationOf } from '../../../../lib/core/translate/index.ts'
import { ask, assistant, type Body, chat, text, tool, user } from '../support/requests.ts'

describe('a member of a chat request', () => {
  const ROWS: [what: string, given: Body, made: Body][] = [
    ['no limit of the output', {}, { max_tokens: 2000 }],
    ['max_tokens', { max_tokens: 7 }, { max_tokens: 7 }],
    [
      'max_completion_tokens before max_tokens',
      { max_completion_tokens: 8, max_tokens: 7 },
      { max_tokens: 8 },
    ],
    ['a temperature in range', { temperature: 0.4 }, { temperature: 0.4 }],
    ['a temperature beyond the range', { temperature: 1.7 }, { temperature: 1 }],
    ['top_p', { top_p: 0.3 }, { top_p: 0.3 }],
    ['temperature and top_p', { temperature: 0, top_p: 0.3 }, { temperature: 0, top_p: undefined }],
    ['top_k', { top_k: 5 }, { top_k: 5 }],
    ['one stop sequence', { stop: 'END' }, { stop_sequences: ['END'] }],
    ['several stop sequences', { stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    ['no stop sequence', { stop: [] }, { stop_sequences: undefined }],
    ['user', { user: 'u1', safety_identifier: 's1' }, { metadata: { user_id: 'u1' } }],
    ['safety_identifier', { safety_identifier: 's1' }, { metadata: { user_id: 's1' } }],
    ['service_tier auto', { service_tier: 'auto' }, { service_tier: 'auto' }],
    ['service_tier priority', { service_tier: 'priority' }, { service_tier: 'auto' }],
    ['service_tier default', { service_tier: 'default' }, { service_tier: 'standard_only' }],
    [
      'stream',
      { stream: true, stream_options: { include_usage: true } },
      { stream: true, stream_options: undefined },
    ],
    ['stream: false', { stream: false }, { stream: undefined }],
    ['cache_control', { cache_control: { type: 'ephemeral' } }, { cache_control: { type: 'ephemeral' } }],
    ['plain text as the format', { response_format: { type: 'text' } }, { output_config: undefined }],
    [
      'a schema as the format',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'n', schema: { type: 'object' }, strict: true },
        },
      },
      {
        output_config: {
          format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
        },
      },
    ],
    ...['json_object', 'json_schema'].map((type): [string, Body, Body] => [
      `a schema in a format of the type ${type}, as Together has it`,
      { response_format: { type, schema: { type: 'object' } } },
      {
        output_config: {
          format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
        },
      },
    ]),
    [
      'what is neutral',
      { n: 1, frequency_penalty: 0, presence_penalty: 0, logit_bias: {}, logprobs: false },
      {},
    ],
    [
      'what LangChain sends to Mistral',
      { temperature: 0.7, top_p: 1, safe_prompt: false, random_seed: 1 },
      { temperature: 0.7, top_p: undefined, safe_prompt: undefined, random_seed: undefined },
    ],
    [
      'what makes nothing other',
      { seed: 1, store: true, metadata: { a: 'b' }, prompt_cache_key: 'k', verbosity: 'low' },
      {},
    ],
    [
      'nulls',
      { stop: null, tools: null, n: null, audio: null, tool_choice: null, reasoning_effort: null },
      {},
    ],
  ]
  for (const [what, given, made] of ROWS) {
    it(`is translated: ${what}`, () => {
      const expected = { model: 'chat', max_tokens: 2000, messages: [user('hi')], ...made }
      assert.deepEqual(chat.translate(given), JSON.parse(JSON.stringify(expected)))
    })
  }

  for (const id of ['ann@example.com', '+49 (30) 123-4567', '00493012345', 'u'.repeat(257)]) {
    it(`is translated: the user ${id.slice(0, 20)}, whom Anthropic refuses, to the same opaque id each time`, () => {
      const { metadata } = chat.translate({ user: id })
      assert.match(String((metadata as { user_id?: unknown }).user_id), /^[0-9a-f]{64}$/)
      assert.deepEqual(chat.translate({ safety_identifier: id }).metadata, metadata)
    })
  }

  for (const id of ['42', 'ann', '123e4567-e89b-12d3-a456-426614174000', 'u'.repeat(256)]) {
    it(`is translated: the user ${id.slice(0, 20)}, as it is`, () =>
      assert.deepEqual(chat.translate({ user: id }).metadata, { user_id: id }))
  }

  const SAMPLING: [model: string, made: Body][] = [
    ['claude-sonnet-4-6', { temperature: 0.4, top_k: 5 }],
    ['claude-opus-4-5-20251101', { temperature: 0.4, top_k: 5 }],
    ['claude-opus-4-20250514', { temperature: 0.4, top_k: 5 }],
    ['other', { temperature: 0.4, top_k: 5 }],
    ['claude-opus-4-7', {}],
    ['us.anthropic.claude-opus-4-8', {}],
    ['anthropic/claude-opus-4.7', {}],
    ['anthropic/claude-opus-4.6', { temperature: 0.4, top_k: 5 }],
    ['claude-sonnet-5', {}],
    ['claude-fable-5-1', {}],
  ]
  for (const [model, made] of SAMPLING) {
    it(`is translated: how ${model} picks its words`, () => {
      const { temperature, top_p, top_k } = chat.translate({ temperature: 0.4, top_k: 5 }, model)
      assert.deepEqual(
        { temperature, top_p, top_k },
        { temperature: undefined, top_p: undefined, top_k: undefined, ...made },
      )
    })
  }

  const REFUSED: [member: string, given: Body][] = [
    ['n', { n: 2 }],
    ['service_tier', { service_tier: 'flex' }],
    ['service_tier', { service_tier: 'scale' }],
    ['speed', { speed: 'fast' }],
    ['reasoning_effort', { reasoning_effort: 'mystery' }],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['logit_bias', { logit_bias: { 1: 5 } }],
    ['frequency_penalty', { frequency_penalty: 0.5 }],
    ['safe_prompt', { safe_prompt: true }],
    ['presence_penalty', { presence_penalty: -1 }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['web_search_options', { web_search_options: {}, tools: [tool('web_search')] }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: { name: 'f' } }],
    ['stop', { stop: ['\n'] }],
    ['response_format', { response_format: { type: 'grammar' } }],
    ['response_format', { response_format: { type: 'json_schema', json_schema: { name: 'n' } } }],
    ['guided_regex', { guided_regex: 'a+' }],
    ['__proto__', JSON.parse('{"__proto__":{}}')],
  ]
  for (const [member, given] of REFUSED) {
    it(`is refused: ${member} of ${JSON.stringify(given)}`, () => {
      assert.equal(chat.refusedMember(given), member)
    })
  }
})

const direction = translationOf(chatCompletions, { protocol: 'anthropic' })
/** A request that the endpoint’s own schema may not let through. */
const unchecked = (json: JsonObject, upstreamModel = 'm') =>
  direction?.request({ model: 'm', messages: ask, ...json }, { upstreamModel, defaultMaxTokens: 10 }) ?? {}
const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const toolMessage = (id: string) => ({ role: 'tool', tool_call_id: id, content: id })

describe('a member of a chat on an anthropic line', () => {
  const ROWS: [given: JsonObject, made: JsonObject][] = [
    [{ max_completion_tokens: null, max_tokens: 7 }, { max_tokens: 7 }],
    [{ user: '', safety_identifier: 's' }, { metadata: { user_id: 's' } }],
    [{ user: '123456' }, { metadata: { user_id: '123456' } }],
    [{ user: 'a1234567' }, { metadata: { user_id: 'a1234567' } }],
    [{ service_tier: null, cache_control: null, temperature: null, top_p: null, top_k: null }, {}],
    [
      { temperature: 0.5, top_p: 0.5, top_k: 3 },
      { temperature: 0.5, top_k: 3 },
    ],
    [{ stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    [{ modalities: ['text'], function_call: 'none', functions: [], top_logprobs: 0 }, {}],
    [{ function_call: 'auto', response_format: 'x' }, {}],
    [{ system: 'a' }, { system: [text('a')] }],
    [{ reasoning_effort: 'low', max_tokens: 1024 }, { max_tokens: 1024 }],
    [
      { reasoning_effort: 'max', max_tokens: 1030 },
      { max_tokens: 1030, thinking: { type: 'enabled', budget_tokens: 1024 } },
    ],
    [
      { reasoning_effort: 'max', max_tokens: 1025, top_p: 0.95 },
      { max_tokens: 1025, thinking: { type: 'enabled', budget_tokens: 1024 }, top_p: 0.95 },
    ],
    [
      { reasoning_effort: 'max', max_tokens: 2000 },
      { max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1900 } },
    ],
    [
      { reasoning_effort: 'high', max_tokens: 10_001 },
      { max_tokens: 10_001, thinking: { type: 'enabled', budget_tokens: 8000 } },
    ],
    [{ tools: [tool('f')] }, { tools: [{ name: 'f', input_schema: { type: 'object', properties: {} } }] }],
  ]
  for (const [given, made] of ROWS)
    it(`is translated: ${JSON.stringify(given)}`, () =>
      assert.deepEqual(unchecked(given), { model: 'm', max_tokens: 10, messages: [user('hi')], ...made }))

  it('does not think where a tool is forced, by its name too', () => {
    for (const tool_choice of ['required', { type: 'function', function: { name: 'f' } }]) {
      const asked = { reasoning_effort: 'high', max_tokens: 5000, tools: [tool('f')], tool_choice }
      assert.equal(chat.translate(asked).thinking, undefined)
    }
  })

  it('asks in words for the format first, then for the call', () => {
    const asked = { response_format: { type: 'json_object' }, tools: [tool('f')], tool_choice: 'required' }
    const system = unchecked(asked, 'claude-opus-5-5').system as { text: string }[]
    assert.deepEqual(
      system.map(({ text }) => /JSON|tools/.exec(text)?.[0]),
      ['JSON', 'tools'],
    )
  })

  it('is refused where it says what no message can', () => {
    const rows: [string, unknown][] = [
      ['logit_bias', 7],
      ['modalities', 'text'],
      ['modalities', ['audio']],
      ['functions', {}],
      ['function_call', 'f'],
      ['moderation', {}],
    ]
    for (const [param, value] of rows) assert.throws(() => unchecked({ [param]: value }), { param })
  })

  it('thinks behind a call only where what was thought before it is still there', () => {
    const thought = (details: unknown[]) => {
      const said = { role: 'assistant', reasoning_details: details, tool_calls: [call('a')] }
      const asked = { messages: [...ask, said, toolMessage('a')], reasoning_effort: 'low', max_tokens: 5000 }
      return chat.translate(asked).thinking
    }
    const redacted = {
      type: 'reasoning.encrypted',
      format: 'anthropic-claude-v1',
      index: 0,
      length: 0,
      data: 'x',
    }
    assert.deepEqual(thought([redacted]), { type: 'enabled', budget_tokens: 1024 })
    assert.equal(thought([]), undefined)
    const alone = { messages: [toolMessage('a')], reasoning_effort: 'low', max_tokens: 5000 }
    assert.equal(chat.translate(alone).thinking, undefined)
  })
})

describe('the tools of a chat on an anthropic line', () => {
  const EPHEMERAL = { cache_control: { type: 'ephemeral' } }
  const made = (name: string, more: object = {}) => ({
    name,
    input_schema: { type: 'object', properties: {} },
    ...more,
  })
  const fn = (members: object, more: object = {}) => ({
    type: 'function',
    function: { name: 'f', ...members },
    ...more,
  })
  const closed = { type: 'object', additionalProperties: false }

  const TOOLS: [given: object, made: object][] = [
    [fn({ description: '' }), made('f')],
    [fn({ parameters: null, strict: false }), made('f')],
    [
      fn({ parameters: { additionalProperties: false }, strict: true }),
      { name: 'f', input_schema: closed, strict: true },
    ],
    [fn({ parameters: { type: 'string' } }), { name: 'f', input_schema: { type: 'string' } }],
    [fn(EPHEMERAL), made('f', EPHEMERAL)],
    [fn({}, EPHEMERAL), made('f', EPHEMERAL)],
    [fn({}, { prompt_cache_breakpoint: {} }), made('f', EPHEMERAL)],
    [
      { name: 'f', description: 'd', ...EPHEMERAL, input_schema: {} },
      { name: 'f', description: 'd', ...EPHEMERAL, input_schema: { type: 'object' } },
    ],
  ]
  for (const [given, expected] of TOOLS)
    it(`are ${JSON.stringify(given)}`, () =>
      assert.deepEqual(unchecked({ tools: [given] }).tools, [expected]))

  it('are strict up to the twentieth that can be', () => {
    const unfit = fn({ strict: true, parameters: { properties: { a: { $ref: '#' } } } })
    const fit = fn({ strict: true })
    const tools = unchecked({ tools: [unfit, fn({}), ...Array(21).fill(fit)] }).tools as JsonObject[]
    assert.deepEqual(
      tools.map(({ strict }) => strict === true),
      [false, false, ...Array(20).fill(true), false],
    )
  })

  const g = { type: 'function', function: { name: 'g' } }
  const allowed = (members: object) => ({ type: 'allowed_tools', allowed_tools: members })
  const CHOICES: [choice: unknown, made: unknown, names?: string[]][] = [
    [allowed({ mode: 'auto', tools: [g, 'x', { type: 'function' }] }), { type: 'auto' }, ['g']],
    [allowed({ tools: [g, { function: { name: 'f' } }] }), { type: 'auto' }],
    [
      { type: 'function', function: { name: 'a.b' } },
      { type: 'tool', name: 'a_b_2e7336dc' },
    ],
    [{ type: 'none', function: { name: 'f' } }, { type: 'none' }],
  ]
  for (const [tool_choice, choice, names = ['f', 'g']] of CHOICES)
    it(`are chosen by ${JSON.stringify(tool_choice)}`, () => {
      const asked = unchecked({ tools: [tool('f'), tool('g')], tool_choice })
      const tools = asked.tools as { name: string }[]
      assert.deepEqual([asked.tool_choice, tools.map(({ name }) => name)], [choice, names])
    })

  const REFUSED: [param: string, json: JsonObject][] = [
    ['tools[0]', { tools: [{ type: 'function' }] }],
    ['tools[0]', { tools: [{ name: 'f' }] }],
    ['tools[0]', { tools: [{ type: 'x', name: 'f', input_schema: {} }] }],
    ['tool_choice.allowed_tools', { tool_choice: allowed({ tools: [{ function: { name: 'h' } }] }) }],
    ['tool_choice.allowed_tools', { tool_choice: allowed({}) }],
    ['tool_choice', { tool_choice: { type: 'allowed_tools', allowed_tools: 'x' } }],
    ['tool_choice', { tool_choice: { type: 'function' } }],
    ['tool_choice', { tool_choice: { type: 'x', function: { name: 'f' } } }],
    ['tool_choice', { tool_choice: { ...allowed({ tools: [g] }), type: 'x' } }],
    ['tool_choice', { tool_choice: { type: 'web_search' } }],
    ['tool_choice', { web_search_options: {}, tool_choice: { type: 'search' } }],
    ['tool_choice', { tool_choice: 'constructor' }],
    ['tool_choice', { tool_choice: ['auto'] }],
  ]
  for (const [param, json] of REFUSED)
    it(`are refused for ${param}: ${JSON.stringify(json)}`, () =>
      assert.throws(() => unchecked({ tools: [tool('f'), tool('g')], ...json }), {
        name: 'Untranslatable',
        param,
      }))

  it('leave nothing behind where all were left out', () => {
    const leaveOut = () => {}
    const context = { upstreamModel: 'm', defaultMaxTokens: 10, leaveOut }
    const json = {
      model: 'm',
      messages: ask,
      tools: [{ type: 'x' }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
    }
    assert.deepEqual(direction?.request(json, context), {
      model: 'm',
      max_tokens: 10,
      messages: [user('hi')],
    })
  })
})

describe('the tools of a chat', () => {
  it('are described in Anthropic’s words', () => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    const { tools } = chat.translate({
      tools: [
        { type: 'function', function: { name: 'f', description: 'does', parameters, strict: true } },
        { type: 'function', function: { name: 'g' }, cache_control: { type: 'ephemeral' } },
      ],
    })
    assert.deepEqual(tools, [
      {
        name: 'f',
        description: 'does',
        input_schema: { ...parameters, additionalProperties: false },
        strict: true,
      },
      { name: 'g', input_schema: { type: 'object', properties: {} }, cache_control: { type: 'ephemeral' } },
    ])
  })

  const CHOICES: [given: Body, made: unknown][] = [
    [{}, undefined],
    [{ tool_choice: 'auto' }, { type: 'auto' }],
    [{ tool_choice: 'none' }, { type: 'none' }],
    [{ tool_choice: 'required' }, { type: 'any' }],
    [{ tool_choice: 'any' }, { type: 'any' }],
    [{ tool_choice: { type: 'auto' } }, { type: 'auto' }],
    [{ tool_choice: { type: 'none' } }, { type: 'none' }],
    [{ tool_choice: { type: 'required' } }, { type: 'any' }],
    [{ tool_choice: { type: 'function', function: { name: 'g' } } }, { type: 'tool', name: 'g' }],
    [{ parallel_tool_calls: true }, undefined],
    [{ parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [
      { parallel_tool_calls: false, tool_choice: 'required' },
      { type: 'any', disable_parallel_tool_use: true },
    ],
    [{ parallel_tool_calls: false, tool_choice: 'none' }, { type: 'none' }],
  ]
  for (const [given, made] of CHOICES) {
    it(`are chosen by ${JSON.stringify(given)}`, () => {
      assert.deepEqual(chat.translate({ tools: [tool('f'), tool('g')], ...given }).tool_choice, made)
    })
  }

  it('may be written as Anthropic’s, with their calls and results', () => {
    const tools = [{ name: 'f', description: 'does', input_schema: { type: 'object', properties: {} } }]
    const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } }
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'done' }] }
    const made = chat.translate({
      tools,
      system: [text('Be brief.')],
      messages: [
        ...ask,
        { role: 'assistant', content: [text('Let me see'), use] },
        { role: 'user', content: [text('and?'), result] },
      ],
    })
    assert.deepEqual([made.tools, made.system], [tools, [text('Be brief.')]])
    assert.deepEqual(made.messages, [
      user('hi'),
      assistant(text('Let me see'), use),
      { role: 'user', content: [result, text('and?')] },
    ])
  })

  it('were called with arguments that may be an object', () => {
    const called = (args: unknown) => ({
      messages: [
        ...ask,
        {
          role: 'assistant',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: args } }],
        },
      ],
    })
    const use = { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } }
    assert.deepEqual(chat.translate(called({ a: 1 })).messages, [user('hi'), assistant(use)])
    assert.equal(chat.refusedMember(called('[1]')), 'messages[1].tool_calls[0].function.arguments')
  })

  it('are shown to the model only where they are allowed', () => {
    const allowed_tools = { mode: 'required', tools: [{ type: 'function', function: { name: 'g' } }] }
    const { tools, tool_choice } = chat.translate({
      tools: [tool('f'), tool('g')],
      tool_choice: { type: 'allowed_tools', allowed_tools },
    })
    assert.deepEqual(
      (tools as { name: string }[]).map(({ name }) => name),
      ['g'],
    )
    assert.deepEqual(tool_choice, { type: 'any' })
  })

  it('leave no trace where there are none', () => {
    const { tools, tool_choice } = chat.translate({
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: false,
    })
    assert.deepEqual([tools, tool_choice], [undefined, undefined])
  })
})

const TOOLS = { tools: [tool('f'), tool('g')] }
const REQUIRED = { ...TOOLS, tool_choice: 'required' }
const NAMED = { ...TOOLS, tool_choice: { type: 'function', function: { name: 'g' } } }
const MODE = { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] }
const ALLOWED = { ...TOOLS, tool_choice: { type: 'allowed_tools', allowed_tools: MODE } }

const namesOf = (tools: unknown) => (tools as { name: string }[]).map(({ name }) => name)

describe('a tool that a chat forces', () => {
  for (const model of [
    'claude-opus-5-5',
    'us.anthropic.claude-sonnet-5-5',
    'anthropic/claude-haiku-5.5',
    'claude-fable-5-1',
    'claude-mythos-preview',
    'claude-opus-6-20270601',
  ]) {
    it(`is asked for in words of ${model}, which allows no force`, () => {
      const any = 'Call at least one of the tools in your answer.'
      for (const [body, names, instruction] of [
        [REQUIRED, ['f', 'g'], any],
        [NAMED, ['g'], 'Call the tool g in your answer.'],
        [ALLOWED, ['f'], any],
      ] as const) {
        const { tools, tool_choice, system } = chat.translate(body, model)
        assert.deepEqual(
          [tool_choice, namesOf(tools), system],
          [{ type: 'auto' }, names, [text(instruction)]],
        )
      }
    })
  }

  it('leaves the thinking, and the number of calls, as they were asked for', () => {
    const body = { ...REQUIRED, reasoning_effort: 'high', parallel_tool_calls: false }
    const { tool_choice, thinking } = chat.translate(body, 'claude-opus-5-5')
    assert.deepEqual(tool_choice, { type: 'auto', disable_parallel_tool_use: true })
    assert.deepEqual(thinking, { type: 'adaptive', display: 'summarized' })
  })

  for (const model of ['claude-opus-4-5', 'claude-sonnet-5-20260630', 'claude-fable-5', 'other']) {
    it(`is forced on ${model}`, () => {
      assert.deepEqual(chat.translate(REQUIRED, model).tool_choice, { type: 'any' })
      const { tool_choice, system, tools } = chat.translate(NAMED, model)
      assert.deepEqual([tool_choice, system], [{ type: 'tool', name: 'g' }, undefined])
      assert.deepEqual(namesOf(tools), ['f', 'g'])
    })
  }

  it('changes nothing where none is forced', () => {
    for (const tool_choice of ['auto', 'none'])
      assert.deepEqual(chat.translate({ ...TOOLS, tool_choice }, 'claude-opus-5-5').tool_choice, {
        type: tool_choice,
      })
  })
})
