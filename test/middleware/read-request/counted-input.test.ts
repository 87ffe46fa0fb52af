import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  chatCompletions,
  estimateTokens,
  messages,
  type Operation,
} from '../../../lib/core/operations/index.ts'
import { chatBody, messageBody } from '../../support/gateway.ts'

const TEXT = 'a text that a model reads '.repeat(1000)
const TOKENS = estimateTokens(TEXT)

function countedOf(operation: Operation, body: object): number {
  const raw = Buffer.from(JSON.stringify(body))
  return operation.facts(JSON.parse(raw.toString()), raw, estimateTokens).estimatedInputTokens
}

const assistant = (extra: object) => ({
  messages: [
    { role: 'assistant', content: 'yes', ...extra },
    { role: 'user', content: 'hi' },
  ],
})
const user = (block: object) => ({ messages: [{ role: 'user', content: [block] }] })
const schema = { type: 'object', description: TEXT }

/** Where a caller may put text, beside what is plainly the prompt. */
const CHAT: Record<string, object> = {
  'the schema of the answer': {
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
  },
  'functions beside tools': {
    tools: [{ type: 'function', function: { name: 'x' } }],
    functions: [{ name: 'y', description: TEXT }],
  },
  'a predicted answer': { prediction: { type: 'content', content: TEXT } },
  'a function call of the older kind': assistant({ function_call: { name: 'x', arguments: TEXT } }),
  'the arguments of a call, as an object': assistant({
    tool_calls: [{ id: 'x', type: 'function', function: { name: 'x', arguments: { x: TEXT } } }],
  }),
  'reasoning handed back': assistant({ reasoning_content: TEXT }),
  'a name': assistant({ name: TEXT }),
  'a system prompt of Anthropic’s': { system: TEXT },
  'a tool call of Anthropic’s': user({ type: 'tool_use', id: 'x', name: 'x', input: { x: TEXT } }),
  'a tool result of Anthropic’s': user({ type: 'tool_result', tool_use_id: 'x', content: TEXT }),
}

const MESSAGES: Record<string, object> = {
  'the schema of the answer': { output_config: { format: { type: 'json_schema', schema } } },
  'a document in plain text': user({
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data: TEXT },
  }),
  'a document in parts': user({
    type: 'document',
    source: { type: 'content', content: [{ type: 'text', text: TEXT }] },
  }),
  'a search result': user({ type: 'search_result', title: 'x', content: [{ type: 'text', text: TEXT }] }),
}

describe('the input of a request, for which money is held', () => {
  for (const [what, extra] of Object.entries(CHAT))
    it(`counts ${what} (chat)`, () => assert.ok(countedOf(chatCompletions, chatBody({ ...extra })) >= TOKENS))

  for (const [what, extra] of Object.entries(MESSAGES))
    it(`counts ${what} (messages)`, () => assert.ok(countedOf(messages, messageBody({ ...extra })) >= TOKENS))

  it('does not count what no model reads', () => {
    const plain = countedOf(chatCompletions, chatBody())
    assert.equal(countedOf(chatCompletions, chatBody({ response_format: { type: 'json_object' } })), plain)
    assert.equal(countedOf(chatCompletions, chatBody({ metadata: { note: TEXT } })), plain)
  })

  it('survives what is nested beyond the stack', () => {
    const depth = 200_000
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`
    const raw = Buffer.from(
      `{"model":"chat","messages":[{"role":"user","content":"hi","x":${deep}}],"stream":false}`,
    )
    const { estimatedInputTokens } = chatCompletions.facts(JSON.parse(raw.toString()), raw, estimateTokens)
    assert.ok(estimatedInputTokens > 1000)
  })
})

describe('the output of a request, for which money is held', () => {
  for (const [lower, higher] of [
    ['max_tokens', 'max_completion_tokens'],
    ['max_completion_tokens', 'max_tokens'],
  ] as const)
    it(`is at most the greater of both limits, whichever the upstream goes by (${higher})`, () => {
      const body = chatBody({ [lower]: 1, [higher]: 5000 })
      const facts = chatCompletions.facts(body, Buffer.from(JSON.stringify(body)), estimateTokens)
      assert.equal(facts.maxOutputTokens, 5000)
    })
})
