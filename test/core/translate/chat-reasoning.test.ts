import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatWithoutForeign } from '../../../lib/core/translate/chat-as-messages/foreign-thinking.ts'
import { ask, assistant, type Body, chat, text, tool } from './requests.ts'

describe('the reasoning effort of a chat', () => {
  const budget = (body: Body) =>
    (chat.translate(body).thinking as { budget_tokens?: number } | undefined)?.budget_tokens
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const result = { role: 'tool', tool_call_id: 'call_1', content: 'one' }
  const detail = {
    type: 'reasoning.text',
    format: 'anthropic-claude-v1',
    index: 0,
    length: 3,
    signature: 's',
  }
  const HIGH = { max_tokens: 10_000, reasoning_effort: 'high' }

  it('becomes a share of the output', () => {
    const efforts = ['minimal', 'low', 'medium', 'high', 'xhigh', 'none']
    assert.deepEqual(
      efforts.map((reasoning_effort) => budget({ max_tokens: 20_000, reasoning_effort })),
      [2000, 4000, 10_000, 16_000, 19_000, undefined],
    )
  })

  it('leaves some of the output, and asks for no less than the smallest budget', () => {
    assert.equal(budget({ max_tokens: 1025, reasoning_effort: 'high' }), 1024)
    assert.equal(budget({ max_tokens: 1024, reasoning_effort: 'high' }), undefined)
    assert.equal(budget({ max_tokens: 3000, reasoning_effort: 'low' }), 1024)
  })

  const SUMMARIZED = { type: 'adaptive', display: 'summarized' }
  for (const [model, adaptive] of [
    ['claude-opus-4-6', { type: 'adaptive' }],
    ['claude-sonnet-4-7-20270101', SUMMARIZED],
    ['claude-opus-5', SUMMARIZED],
    ['us.anthropic.claude-haiku-5-1', SUMMARIZED],
  ] as const) {
    it(`is told as such to ${model}`, () => {
      const { thinking, output_config } = chat.translate(HIGH, model)
      assert.deepEqual([thinking, output_config], [adaptive, { effort: 'high' }])
    })
  }

  const LOW = [undefined, { effort: 'low' }]
  const OFF = [{ type: 'disabled' }, undefined]
  for (const [model, told] of [
    ['claude-opus-4-8', [undefined, undefined]],
    ['claude-sonnet-5', OFF],
    ['claude-sonnet-5-20260630', OFF],
    ['anthropic/claude-opus-5', OFF],
    ['claude-haiku-5-5', OFF],
    ['claude-opus-5-5', LOW],
    ['anthropic/claude-sonnet-5.5', LOW],
    ['claude-fable-5', LOW],
    ['claude-opus-6', LOW],
  ] as const) {
    it(`none is as little as ${model} allows`, () => {
      const { thinking, output_config } = chat.translate({ reasoning_effort: 'none' }, model)
      assert.deepEqual([thinking, output_config], told)
    })
  }

  for (const model of [
    'claude-3-7-sonnet-20250219',
    'claude-sonnet-4-20250514',
    'claude-opus-4-5-20251101',
    'other',
  ]) {
    it(`is a budget to ${model}`, () => {
      const { thinking, output_config } = chat.translate(HIGH, model)
      assert.deepEqual([thinking, output_config], [{ type: 'enabled', budget_tokens: 8000 }, undefined])
    })
  }

  const ASKED: [given: Body, effort: string | undefined][] = [
    [{ reasoning: { effort: 'low' } }, 'low'],
    [{ reasoning: { max_tokens: 9000 } }, 'high'],
    [{ reasoning: { enabled: true } }, 'medium'],
    [{ reasoning: { enabled: false, effort: 'high' } }, undefined],
    [{ reasoning: { exclude: true } }, undefined],
    [{ thinking: { type: 'enabled', budget_tokens: 2000 } }, 'low'],
    [{ thinking: { type: 'enabled' } }, 'medium'],
    [{ thinking: { type: 'adaptive' } }, 'medium'],
    [{ thinking: { type: 'disabled' } }, undefined],
    [{ thinking: { type: 'enabled' }, reasoning: { effort: 'low' } }, 'low'],
    [{ thinking: { type: 'disabled' }, reasoning_effort: 'high' }, 'high'],
  ]
  for (const [given, effort] of ASKED) {
    it(`is found in ${JSON.stringify(given)}`, () => {
      const body = { max_tokens: 10_000, ...given }
      const { thinking, output_config, reasoning } = chat.translate(body, 'claude-opus-4-6')
      assert.deepEqual([output_config, reasoning], [effort && { effort }, undefined])
      assert.deepEqual(thinking, effort && { type: 'adaptive' })
    })
  }

  it('none is found in each of these members', () => {
    for (const given of [
      { reasoning: { enabled: false } },
      { reasoning: { effort: 'none' } },
      { thinking: { type: 'disabled' } },
    ])
      assert.deepEqual(chat.translate(given, 'claude-sonnet-5').thinking, { type: 'disabled' })
  })

  it('stands beside a format', () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } }
    const { output_config } = chat.translate({ ...HIGH, response_format }, 'claude-opus-5')
    assert.deepEqual(output_config, {
      format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
      effort: 'high',
    })
  })

  it('takes the temperature away, and a low top_p', () => {
    const asked = { ...HIGH, top_p: 0.97 }
    assert.equal(chat.translate(asked, 'claude-opus-4-7').top_p, undefined)
    const { temperature, top_p, top_k } = chat.translate({ ...HIGH, temperature: 0.2, top_p: 0.5, top_k: 3 })
    assert.deepEqual([temperature, top_p, top_k], [undefined, undefined, undefined])
    assert.equal(chat.translate({ ...HIGH, top_p: 0.97 }).top_p, 0.97)
  })

  it('is dropped where Anthropic allows no thinking', () => {
    const tools = [tool('f')]
    assert.equal(budget({ ...HIGH, tools, tool_choice: 'required' }), undefined)
    assert.equal(budget({ ...HIGH, messages: [...ask, { role: 'assistant', content: 'So' }] }), undefined)
    assert.equal(
      budget({ ...HIGH, messages: [...ask, { role: 'assistant', tool_calls: [call] }, result] }),
      undefined,
    )
  })

  it('is kept behind a tool call that comes with its thinking', () => {
    const said = {
      role: 'assistant',
      reasoning_content: 'hmm',
      reasoning_details: [detail],
      tool_calls: [call],
    }
    const { thinking, messages } = chat.translate({ ...HIGH, messages: [...ask, said, result] })
    assert.deepEqual(thinking, { type: 'enabled', budget_tokens: 8000 })
    assert.deepEqual((messages as { content: unknown[] }[])[1]?.content[0], {
      type: 'thinking',
      thinking: 'hmm',
      signature: 's',
    })
  })

  it('goes with thinking only where that is as it was', () => {
    const said = { role: 'assistant', content: 'a', reasoning_content: 'hmmm', reasoning_details: [detail] }
    const { messages } = chat.translate({ messages: [...ask, said, ...ask] })
    assert.deepEqual((messages as unknown[])[1], assistant(text('a')))
  })
})

describe('the thinking of an Anthropic-style line, on the way to a line that speaks chat completions', () => {
  const format = 'anthropic-claude-v1'
  const said = { role: 'assistant', content: 'a', reasoning_content: 'hmm' }
  const sent = (message: object) => chatWithoutForeign({ model: 'm', messages: [...ask, message] })

  it('is left out, as that line signed it for itself', () => {
    const own = { type: 'reasoning.text', format, index: 0, length: 3, signature: 's' }
    assert.deepEqual(sent({ ...said, reasoning_details: [own] }), {
      model: 'm',
      messages: [...ask, { role: 'assistant', content: 'a' }],
    })
  })

  it('stays where a hosted router told it, which wants it back', () => {
    for (const details of [
      [{ type: 'reasoning.text', format, index: 0, text: 'hmm', signature: 's' }],
      [{ type: 'reasoning.text', format: 'openai-responses-v1', index: 0, length: 3 }],
      [],
      undefined,
    ]) {
      const message = { ...said, reasoning_details: details }
      assert.deepEqual(sent(message), { model: 'm', messages: [...ask, message] })
    }
  })
})
