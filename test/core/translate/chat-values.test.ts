import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../lib/core/json/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import { ask, chat, text, tool, user } from './requests.ts'

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
    [{ reasoning_effort: 'mystery', max_tokens: 2000 }, { max_tokens: 2000 }],
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
