import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, OPERATIONS } from '../../../../lib/core/operations/index.ts'

describe('a chat with Anthropic-style parts', () => {
  type Json = Record<string, unknown>

  const PER_REQUEST = 3
  const PER_MESSAGE = 4
  const PER_IMAGE = 1200
  const PER_FILE = 4000

  /** The facts of a chat whose texts are as many tokens as they have characters. */
  function factsOf(members: Json) {
    const json = { model: 'm', messages: [], ...members }
    return chatCompletions.facts(json, Buffer.from(JSON.stringify(json)), ({ length }) => length)
  }
  const image = { type: 'image_url', image_url: { url: 'https://a.test' } }

  describe('a part of a chat with an Anthropic-style tool', () => {
    const rows: [what: string, part: Json, tokens: number, images: number][] = [
      ['its use', { type: 'tool_use', input: { a: 1 } }, 7, 0],
      ['a result as a text', { type: 'tool_result', content: 'done' }, 4, 0],
      ['a result of nothing', { type: 'tool_result' }, 0, 0],
      [
        'a result of texts',
        { type: 'tool_result', content: [{ type: 'text', text: 'ab' }, 'no', null] },
        2,
        0,
      ],
      ['a result with an image', { type: 'tool_result', content: [image, { text: 'ab' }] }, PER_IMAGE + 2, 1],
      ['a result with a file', { type: 'tool_result', content: [{ type: 'document' }] }, PER_FILE, 0],
      ['another part with a list', { type: 'other', content: [image] }, PER_FILE, 0],
      ['another part with an input', { type: 'other', input: 'done' }, PER_FILE, 0],
    ]
    for (const [what, part, tokens, images] of rows)
      it(`is counted by its content: ${what}`, () => {
        const facts = factsOf({ messages: [{ role: 'user', content: [part] }] })
        assert.deepEqual(
          [facts.estimatedInputTokens - PER_REQUEST - PER_MESSAGE, facts.images],
          [tokens, images],
        )
        assert.equal(facts.featureParams.get('vision'), images > 0 ? 'messages[0].content[0]' : undefined)
      })
  })

  describe('a part of a chat with thinking', () => {
    const rows: [whose: string, part: Json, tokens: number][] = [
      ['Mistral’s', { type: 'thinking', thinking: [{ text: 'ab' }] }, '[{"text":"ab"}]'.length],
      ['Anthropic’s', { type: 'thinking', thinking: 'abc', signature: 's' }, 3],
      ['one of nothing', { type: 'thinking' }, 0],
    ]
    for (const [whose, part, tokens] of rows)
      it(`is counted by its text, not as a file: ${whose}`, () => {
        const { estimatedInputTokens } = factsOf({ messages: [{ role: 'assistant', content: [part] }] })
        assert.equal(estimatedInputTokens - PER_REQUEST - PER_MESSAGE, tokens)
      })
  })

  describe('a chat that searches the web', () => {
    it('is counted with its largest number of searches', () => {
      const most = (members: Json) => factsOf(members).webSearches
      const tools = [{ type: 'web_search_20250305', max_uses: 3 }, { type: 'function' }]
      assert.deepEqual([most({}), most({ web_search_options: {} }), most({ tools })], [0, 10, 3])
      assert.equal(most({ tools: tools.slice(0, 1) }), 3)
      assert.equal(most({ tools: [{ type: 'function' }] }), 0)
      assert.equal(most({ functions: [{ name: 'f' }], web_search_options: {} }), 10)
    })

    it('is counted by the system prompt beside its messages', () => {
      const counted = factsOf({ system: [{ type: 'text' }] }).estimatedInputTokens
      assert.equal(counted, PER_REQUEST + '[{"type":"text"}]'.length)
    })
  })
})

describe('the reasoning of a chat', () => {
  type Json = Record<string, unknown>

  function featuresOf(members: Json) {
    const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members }
    const chat = OPERATIONS.find(({ path }) => path === '/v1/chat/completions')
    return chat?.facts(body, Buffer.from(JSON.stringify(body)), (text) => text.length).featureParams
  }

  it('a chat may ask for reasoning with the members of OpenRouter and LiteLLM', () => {
    const asked = (members: Json) => featuresOf(members)?.get('reasoning')
    const on: [string, Json][] = [
      ['reasoning', { reasoning: { effort: 'high' } }],
      ['reasoning', { reasoning: { enabled: true } }],
      ['reasoning', { reasoning: { max_tokens: 2000 } }],
      ['reasoning', { reasoning: { effort: 'low' }, thinking: { type: 'disabled' } }],
      ['thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }],
      ['thinking', { thinking: { type: 'enabled' }, reasoning_effort: null }],
      ['reasoning_effort', { reasoning_effort: 'low', thinking: { type: 'disabled' } }],
    ]
    for (const [param, members] of on) assert.equal(asked(members), param, JSON.stringify(members))
    const off: Json[] = [
      { reasoning: { effort: 'none' } },
      { reasoning: { enabled: false, effort: 'high' } },
      { reasoning: { exclude: true } },
      { reasoning: {} },
      { reasoning: null, thinking: null },
      { thinking: { type: 'disabled' } },
      { reasoning_effort: 'none', thinking: { type: 'enabled' } },
    ]
    for (const members of off) assert.equal(asked(members), undefined, JSON.stringify(members))
  })
})
