import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { chatAnswered, chatAsked } from './of-responses.ts'

const PLAIN = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const F = { type: 'function', name: 'f' }
const fn = (members: object) => ({ type: 'function', function: { name: 'f', ...members } })
const SEARCH = { type: 'web_search' }
const closed = { type: 'object', properties: {}, additionalProperties: false }

describe('a member of a request for a response, in a chat,', () => {
  const MADE: [given: JsonObject, made: JsonObject][] = [
    [{}, {}],
    [{ max_output_tokens: 7 }, { max_tokens: 7 }],
    [{ max_output_tokens: null, temperature: null, top_p: null }, {}],
    [
      { temperature: 0, top_p: 0.5 },
      { temperature: 0, top_p: 0.5 },
    ],
    [{ user: 'u', safety_identifier: 's' }, { user: 'u' }],
    [{ user: '', safety_identifier: 's' }, { user: 's' }],
    [{ service_tier: 'flex' }, { service_tier: 'flex' }],
    [{ stream: true }, { stream: true }],
    [{ stream: false, store: null, instructions: null, service_tier: null }, {}],
    [{ text: { format: { type: 'text' } } }, {}],
    [{ text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    [{ text: {} }, {}],
    [{ reasoning: { effort: 'low' } }, { reasoning_effort: 'low' }],
    [{ reasoning: { effort: null } }, {}],
    [{ tools: [F] }, { tools: [fn({})] }],
    [
      { tools: [{ ...F, description: 'd', parameters: closed }] },
      { tools: [fn({ description: 'd', parameters: closed, strict: true })] },
    ],
    [
      { tools: [{ ...F, description: null, parameters: closed, strict: false }] },
      { tools: [fn({ parameters: closed, strict: false })] },
    ],
    [
      { tools: [{ ...F, parameters: { type: 'object', properties: {} }, strict: null }] },
      { tools: [fn({ parameters: { type: 'object', properties: {} } })] },
    ],
    [
      { tools: [{ ...F, parameters: { type: 'string' } }] },
      { tools: [fn({ parameters: { type: 'string' } })] },
    ],
    [{ tools: [{ ...F, parameters: null, strict: true }] }, { tools: [fn({ strict: true })] }],
    [
      { tools: [F], tool_choice: 'required', parallel_tool_calls: true },
      { tools: [fn({})], tool_choice: 'required', parallel_tool_calls: true },
    ],
    [{ tools: [F], tool_choice: null, parallel_tool_calls: null }, { tools: [fn({})] }],
    [{ tools: [], tool_choice: 'required', parallel_tool_calls: true }, {}],
    [{ tool_choice: { type: 'mystery' }, parallel_tool_calls: true }, {}],
    [
      { tools: [F], tool_choice: F },
      { tools: [fn({})], tool_choice: fn({}) },
    ],
    [{ tools: [SEARCH, { type: 'web_search_preview' }], tool_choice: 'auto' }, { web_search_options: {} }],
    [
      { tools: [F, SEARCH], tool_choice: 'auto' },
      { tools: [fn({})], web_search_options: {}, tool_choice: 'auto' },
    ],
    [
      { tools: [F, SEARCH], tool_choice: { type: 'web_search_preview' } },
      { tools: [fn({})], web_search_options: {} },
    ],
    [
      { tools: [F, SEARCH], tool_choice: F },
      { tools: [fn({})], web_search_options: {}, tool_choice: fn({}) },
    ],
    [
      {
        tools: [F, SEARCH],
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [F, SEARCH, { ...F, namespace: 'n' }] },
      },
      {
        tools: [fn({})],
        web_search_options: {},
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [fn({}), { type: 'function', function: { name: 'n__f' } }] },
        },
      },
    ],
    [
      {
        tools: [F, { type: 'namespace', name: 'n', tools: [F, 'x', SEARCH] }],
        tool_choice: { ...F, namespace: 'n' },
      },
      { tools: [fn({}), fn({ name: 'n__f' })], tool_choice: fn({ name: 'n__f' }) },
    ],
  ]
  for (const [given, made] of MADE)
    it(`is translated: ${JSON.stringify(given)}`, () =>
      assert.deepEqual(chatAsked(given), { ...PLAIN, ...made }))

  it('names no namespace that holds no list, and keeps what is no namespace', () => {
    assert.throws(() => chatAsked({ tools: [{ type: 'namespace', name: 'n' }] }), /tools\[0\]/)
    const { body } = chatAnswered(
      { choices: [{ message: { tool_calls: [{ id: 'a', function: { name: 'n__f' } }] } }] },
      {
        tools: [
          { type: 'mcp', name: 'n', tools: [F] },
          { type: 'mcp', name: 'n__f' },
        ],
      },
    )
    const [{ id: _, ...item } = {}] = objectsIn(body.output)
    assert.deepEqual(item, {
      type: 'function_call',
      status: 'completed',
      call_id: 'a',
      name: 'n__f',
      arguments: '{}',
    })
  })
})
