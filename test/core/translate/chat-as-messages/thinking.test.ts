import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  hasAdaptiveThinking,
  omitsThinking,
  takesDisabledThinking,
  takesForcedTool,
  takesPrefill,
  takesSampling,
  thinksByDefault,
} from '../../../../lib/core/translate/chat-as-messages/claude-models.ts'
import { chatWithoutForeign } from '../../../../lib/core/translate/chat-as-messages/thinking.ts'
import {
  encryptedDetail,
  isOwnDetail,
  memberOf,
  reasoningIn,
  signedDetail,
  thinkingBlocks,
  UNSIGNED,
  unsignedOf,
} from '../../../../lib/core/translate/reasoning.ts'
import { ask, assistant, type Body, chat, text, tool } from '../support/requests.ts'

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
    it(`is sent as such to ${model}`, () => {
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

  it('stays where a hosted router put it, which wants it back', () => {
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

/** The features of a model that came with 4.6, 4.7, 5 and 5.1, and whether thinking can be turned off. */
function told(model: string): string {
  assert.equal(takesPrefill(model), !hasAdaptiveThinking(model))
  assert.equal(takesSampling(model), !omitsThinking(model))
  const facts = {
    adaptive: hasAdaptiveThinking(model),
    summarized: omitsThinking(model),
    thinks: thinksByDefault(model),
    off: thinksByDefault(model) && takesDisabledThinking(model),
    unforced: !takesForcedTool(model),
  }
  return Object.entries(facts)
    .filter(([, holds]) => holds)
    .map(([name]) => name)
    .join(' ')
}

describe('the features of a model of Anthropic’s, by its name:', () => {
  const MODELS: [model: string, facts: string][] = [
    ['claude-3-5-haiku-20241022', ''],
    ['claude-3-7-sonnet-20250219', ''],
    ['claude-sonnet-4-20250514', ''],
    ['claude-opus-4', ''],
    ['claude-opus-4-5', ''],
    ['claude-opus-4-5-20251101', ''],
    ['claude-opus-4-6', 'adaptive'],
    ['claude-opus-4.6', 'adaptive'],
    ['claude-opus-4-6-20260101', 'adaptive'],
    ['claude-opus-4-60', ''],
    ['claude-opus-4-20260606', ''],
    ['claude-opus-4-7', 'adaptive summarized'],
    ['claude-opus-4.7-fast', 'adaptive summarized'],
    ['claude-opus-4-9', 'adaptive summarized'],
    ['claude-opus-4-70', ''],
    ['us.anthropic.claude-opus-4-8-v1:0', 'adaptive summarized'],
    ['claude-opus-5', 'adaptive summarized thinks off'],
    ['claude-sonnet-5-20260630', 'adaptive summarized thinks off'],
    ['claude-haiku-5', 'adaptive summarized thinks'],
    ['claude-fable-5', 'adaptive summarized thinks'],
    ['claude-opus-5-1', 'adaptive summarized thinks unforced'],
    ['claude-sonnet-5.9', 'adaptive summarized thinks unforced'],
    ['claude-opus-5-0', 'adaptive summarized thinks'],
    ['claude-haiku-5-5', 'adaptive summarized thinks off unforced'],
    ['claude-haiku-5.5', 'adaptive summarized thinks off unforced'],
    ['claude-haiku-5-55', 'adaptive summarized thinks'],
    ['claude-opus-6', 'adaptive summarized thinks unforced'],
    ['claude-opus-9', 'adaptive summarized thinks unforced'],
    ['claude-opus-10', 'adaptive summarized thinks unforced'],
    ['claude-opus-10-1', 'adaptive summarized thinks unforced'],
    ['claude-opus-99', 'adaptive summarized thinks unforced'],
    ['claude-opus-100', ''],
    ['claude-opus-500', ''],
    ['claude-mythos-preview', 'unforced'],
    ['claude-5', ''],
    ['opus-5', ''],
    ['other', ''],
  ]
  for (const [model, facts] of MODELS) it(model, () => assert.equal(told(model), facts))
})

const FORMAT = 'anthropic-claude-v1'
const thinking = (text: string, signature = 's') => ({ type: 'thinking', thinking: text, signature })
const redacted = (data: string) => ({ type: 'redacted_thinking', data })
/** A detail as hosted routers write it. */
const routed = (members: object) => ({ type: 'reasoning.text', format: FORMAT, signature: 's', ...members })

describe('the thinking blocks of a message', () => {
  const WHOLE: [what: string, text: unknown, details: unknown, blocks: object[]][] = [
    ['one', 'Hm', [signedDetail(0, 's', 2)], [thinking('Hm')]],
    [
      'several, each with its part of the text',
      'abcdef',
      [signedDetail(0, 'x', 1), encryptedDetail(1, 'e'), signedDetail(2, 'y', 5)],
      [thinking('a', 'x'), redacted('e'), thinking('bcdef', 'y')],
    ],
    ['without text', '', [encryptedDetail(0, 'e')], [redacted('e')]],
    ['without a text member', undefined, [encryptedDetail(0, 'e')], [redacted('e')]],
    ['signed without text', '', [signedDetail(0, 's', 0)], [thinking('')]],
    ['of a router, which repeats the text', 'Hm', [routed({ text: 'Hm' })], [thinking('Hm')]],
    [
      'of a router that gives each the index 0',
      'ab',
      [routed({ text: 'a', index: 0 }), routed({ text: 'b', index: 0 })],
      [thinking('a'), thinking('b')],
    ],
    ['of a router without text', '', [routed({ text: '' })], [thinking('')]],
    ['of a client that leaves the length out', 'Hm', [routed({ index: 0 })], [thinking('Hm')]],
    [
      'of a client that leaves one length out, beside others',
      'abc',
      [encryptedDetail(0, 'e'), signedDetail(1, 'x', 1), routed({ index: 2, length: null })],
      [redacted('e'), thinking('a', 'x'), thinking('bc')],
    ],
  ]
  for (const [what, text, details, blocks] of WHOLE) {
    it(`are put together: ${what}`, () => {
      assert.deepEqual(thinkingBlocks({ reasoning_content: text, reasoning_details: details }), blocks)
      assert.deepEqual(thinkingBlocks({ reasoning: text, reasoning_details: details }), blocks)
    })
  }

  const BROKEN: [what: string, details: unknown][] = [
    ['there are none', undefined],
    ['they are no list', { 0: signedDetail(0, 's', 2) }],
    ['one is no object', ['x', signedDetail(0, 's', 2)]],
    ['one is of another format', [{ ...signedDetail(0, 's', 2), format: 'other' }]],
    ['one is missing', [signedDetail(1, 's', 2)]],
    ['the text is longer', [signedDetail(0, 's', 1)]],
    ['the text is shorter', [signedDetail(0, 's', 3)]],
    ['a length is negative', [routed({ length: -1 }), signedDetail(1, 's', 3)]],
    ['a length is no number', [{ ...signedDetail(0, 's', 2), length: '2' }]],
    ['a text has no signature', [{ ...signedDetail(0, 's', 2), signature: 7 }]],
    ['what is encrypted has no data', [signedDetail(0, 's', 2), { ...encryptedDetail(1, 'e'), data: 7 }]],
    ['one is of another type', [{ ...signedDetail(0, 's', 2), type: 'reasoning.summary' }]],
    ['there is text, and none of it signed', []],
  ]
  for (const [what, reasoning_details] of BROKEN)
    it(`are none, as Anthropic would refuse them, where ${what}`, () =>
      assert.deepEqual(thinkingBlocks({ reasoning_content: 'Hm', reasoning_details }), []))
})

describe('a detail of reasoning', () => {
  it('is the gateway’s own by its format and its length', () => {
    assert.equal(isOwnDetail({ ...signedDetail(0, 's', 0) }), true)
    assert.equal(isOwnDetail({ ...encryptedDetail(0, 's') }), true)
    for (const other of [
      routed({ text: 'a' }),
      routed({ length: -1 }),
      routed({ length: '1' }),
      { length: 1 },
    ])
      assert.equal(isOwnDetail(other), false)
  })
})

describe('the member of reasoning', () => {
  it('is the first that has a text', () => {
    const content = { text: 'a', member: 'reasoning_content' }
    assert.deepEqual(reasoningIn({ reasoning_content: 'a', reasoning: 'b' }), content)
    assert.deepEqual(reasoningIn({ reasoning_content: '', reasoning: 'b' }), {
      text: 'b',
      member: 'reasoning',
    })
    for (const none of [{}, { reasoning_content: 7, reasoning: '' }, { reasoning: null }])
      assert.deepEqual(reasoningIn(none), { text: '', member: 'reasoning_content' })
  })

  it('is recognised by the signature that stands for one', () => {
    for (const member of ['reasoning_content', 'reasoning'] as const)
      assert.equal(memberOf(unsignedOf(member)), member)
    for (const other of ['', 'EqQB', undefined, `${UNSIGNED}:`, `${UNSIGNED}:reasoning_content`])
      assert.equal(memberOf(other), undefined)
  })
})
