import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, assistant, type Body, chat, text, tool, user } from './requests.ts'

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
    for (const [param, content] of [
      ['messages[0].content[0].id', [{ ...use, id: 7 }]],
      ['messages[0].content[0].tool_use_id', [{ ...result, tool_use_id: null }]],
    ] as const)
      assert.equal(chat.refusedMember({ messages: [{ role: 'user', content }] }), param)
  })

  it('were called with arguments that may be an object', () => {
    const called = (args: unknown) => ({
      messages: [
        ...ask,
        { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'f', arguments: args } }] },
      ],
    })
    const use = { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } }
    assert.deepEqual(chat.translate(called({ a: 1 })).messages, [user('hi'), assistant(use)])
    assert.equal(chat.refusedMember(called([1])), 'messages[1].tool_calls[0].function.arguments')
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
