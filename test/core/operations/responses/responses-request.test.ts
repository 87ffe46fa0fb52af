import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { bodyFault } from '../../../../lib/core/operations/body/body-schema.ts'
import { estimateTokens, responses } from '../../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const factsOf = (body: Json) => {
  const json = { model: 'chat', ...body }
  assert.equal(bodyFault(responses.schema, json), undefined)
  return responses.facts(json, Buffer.from(JSON.stringify(json)), estimateTokens)
}

const message = (content: unknown, role = 'user') => ({ role, content })

describe('a request for a response', () => {
  it('takes a string, or items, for input', () => {
    assert.equal(factsOf({ input: 'hi' }).messages, 1)
    const items = [message('hi'), message([{ type: 'input_text', text: 'hi' }]), message('so', 'assistant')]
    assert.equal(factsOf({ input: items }).messages, 3)
  })

  for (const [name, body, param] of [
    ['no model', { model: undefined, input: 'hi' }, 'model'],
    ['no input', {}, 'input'],
    ['an input that is no text', { input: 7 }, 'input'],
    ['an unknown role', { input: [message('hi', 'queen')] }, 'input[0].role'],
    ['a part without a type', { input: [message([{ text: 'hi' }])] }, 'input[0].content[0].type'],
    ['a fraction of a token', { input: 'hi', max_output_tokens: 1.5 }, 'max_output_tokens'],
    ['an unknown demand on the lines', { input: 'hi', provider: { onyl: [] } }, 'provider.onyl'],
  ] as const) {
    it(`is refused with ${name}`, () => {
      assert.equal(bodyFault(responses.schema, { model: 'chat', ...body })?.param, param)
    })
  }

  for (const body of [
    { previous_response_id: 'resp_1' },
    { conversation: 'conv_1' },
    { conversation: { id: 'conv_1' } },
    { prompt: { id: 'pmpt_1' } },
  ])
    it(`may have no input beside ${JSON.stringify(body)}`, () => {
      assert.equal(bodyFault(responses.schema, { model: 'chat', ...body }), undefined)
    })

  for (const [member, body] of [['background', { background: true }]] as const) {
    it(`${JSON.stringify(body)} is refused by name`, () => {
      assert.throws(
        () => factsOf({ input: 'hi', ...body }),
        (error) =>
          error instanceof GatewayError && error.code === 'unsupported_feature' && error.param === member,
      )
    })
  }

  it('may set them to null', () => {
    factsOf({ input: 'hi', background: false, conversation: null, prompt: null })
  })

  it('counts instructions, every item, the tools and the schema of the answer', () => {
    const text = 'A sentence of some words that count.'
    const one = estimateTokens(text)
    const few = factsOf({ input: 'x' }).estimatedInputTokens
    const growth = (body: Json) => factsOf({ input: 'x', ...body }).estimatedInputTokens - few
    assert.ok(growth({ instructions: text }) >= one)
    assert.ok(growth({ tools: [{ type: 'function', name: 'f', description: text }] }) >= one)
    const schema = { type: 'object', description: text }
    assert.ok(growth({ text: { format: { type: 'json_schema', name: 'x', schema } } }) >= one)
    assert.equal(growth({ metadata: { note: text }, user: text }), 0)
    for (const item of [
      message(text),
      message([{ type: 'input_text', text }]),
      message([{ type: 'output_text', text }], 'assistant'),
      message([{ type: 'refusal', refusal: text }], 'assistant'),
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: text },
      { type: 'function_call_output', call_id: 'call_1', output: text },
      { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text }] },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text }] },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'A'.repeat(5 * one) },
      { type: 'custom_tool_call', call_id: 'call_1', name: 'f', input: text },
      { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: text } },
    ]) {
      const counted = factsOf({ input: [item] }).estimatedInputTokens
      assert.ok(counted >= one + 7 && counted <= one + 40, `${JSON.stringify(item)}: ${counted}, of ${one}`)
    }
  })

  it('counts images and files by their largest cost', () => {
    const image = { type: 'input_image', image_url: `data:image/png;base64,${'A'.repeat(10_000)}` }
    const file = { type: 'input_file', filename: 'a.pdf', file_data: 'A'.repeat(10_000) }
    const facts = factsOf({ input: [message([image, image, file])] })
    assert.equal(facts.images, 2)
    assert.ok(facts.estimatedInputTokens < 10_000)
    assert.ok(facts.estimatedInputTokens >= 2 * 1200 + 4000)
    const screen = { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot' } }
    assert.equal(factsOf({ input: [screen] }).images, 1)
  })

  for (const [feature, body, param] of [
    ['stream', { stream: true }, 'stream'],
    ['tools', { tools: [{ type: 'web_search' }] }, 'tools'],
    ['json', { text: { format: { type: 'json_object' } } }, 'text.format'],
    ['reasoning', { reasoning: { effort: 'high' } }, 'reasoning'],
    ['vision', { input: [message([{ type: 'input_image', file_id: 'x' }])] }, 'input[0].content[0]'],
  ] as const) {
    it(`asks for the feature ${feature} with ${param}`, () => {
      const facts = factsOf({ input: 'hi', ...body })
      assert.deepEqual([...facts.features], [feature])
      assert.equal(facts.featureParams.get(feature), param)
    })
  }

  it('requests no feature for members without a meaning', () => {
    const body = {
      tools: [],
      text: { format: { type: 'text' } },
      reasoning: { effort: 'none' },
      stream: false,
    }
    assert.deepEqual([...factsOf({ input: 'hi', ...body }).features], [])
  })

  it('needs no window if the upstream truncates its input', () => {
    assert.equal(factsOf({ input: 'hi', truncation: 'auto' }).windowTokens, 0)
    assert.equal(factsOf({ input: 'hi' }).windowTokens, undefined)
  })

  it('is sent upstream as it was written, with the line’s name for the model and without members of the gateway', () => {
    const raw = Buffer.from('{ "model":"chat", "input" : "hi\\u00e9", "provider": {}, "custom": 1.0 }')
    const json = JSON.parse(raw.toString())
    assert.equal(
      responses.upstreamBody(raw, json, { model: 'gpt' }).toString(),
      '{ "model":"gpt", "input" : "hi\\u00e9", "custom": 1.0 }',
    )
  })
})
