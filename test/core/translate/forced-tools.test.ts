import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chat, text, tool } from './requests.ts'

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
