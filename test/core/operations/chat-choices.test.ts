import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, completions, estimateTokens } from '../../../lib/core/operations/index.ts'
import { chunk, readAll } from './read-chunks.ts'

type Json = Record<string, unknown>

const read = (choices: unknown[], members: Json = {}, request: Json = {}) =>
  chatCompletions.readAnswer({ choices, ...members }, request)

describe('the choices of a chat', () => {
  const refused = { message: { refusal: 'No.' } }
  const said = { message: { content: 'Hi' } }
  const filtered = { message: { content: '' }, finish_reason: 'content_filter' }
  const cut = { message: {}, finish_reason: 'length' }
  const empty = { message: {}, finish_reason: 'stop' }
  const rows: [choices: unknown[], substance: string][] = [
    [[refused, said], 'refusal'],
    [[said, refused], 'refusal'],
    [[refused, filtered], 'refusal'],
    [[said, filtered], 'output'],
    [[filtered, said], 'output'],
    [[said, empty], 'output'],
    [[filtered, empty], 'filtered'],
    [[empty, filtered], 'filtered'],
    [[empty, cut], 'no_output'],
    [[null, cut, 'x'], 'no_output'],
    [[filtered, cut], 'filtered'],
    [[empty, { ...empty, stop_reason: '</end>' }], 'no_output'],
    [[{ ...empty, stop_reason: 128_009 }], 'no_output'],
    [[{ ...empty, stop_reason: null }], 'empty'],
    [[{ message: { reasoning_details: [{ type: 'reasoning.encrypted' }] } }], 'output'],
    [[{ message: { reasoning_details: [], tool_calls: {}, images: 'x', function_call: null } }], 'empty'],
    [[{ message: { audio: 'x' } }], 'empty'],
    [[{ message: { content: [{ type: 'text', text: '' }] } }], 'empty'],
    [[{ message: { content: [{ type: 'text', text: '' }, 'x'] } }], 'output'],
    [[{ message: { content: [{ type: 'image_url' }] } }], 'output'],
  ]
  for (const [choices, substance] of rows)
    it(`are ${substance}: ${JSON.stringify(choices)}`, () => assert.equal(read(choices).substance, substance))

  it('are explained by what was asked for, or by the usage', () => {
    assert.equal(read([empty], {}, { stop: 'x' }).substance, 'no_output')
    const usage = { completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 5 } }
    assert.equal(read([empty], { usage }).substance, 'no_output')
    assert.equal(read([{ ...empty, usage }]).substance, 'no_output')
    assert.equal(read([], { usage }).substance, 'empty')
    assert.equal(
      completions.readAnswer({ choices: [{ text: '', finish_reason: 'stop' }] }, { stop: 'x' }).substance,
      'no_output',
    )
  })

  it('have an error where one broke off, the first that is told', () => {
    const broken = (error?: unknown) => ({ ...said, finish_reason: 'error', error })
    assert.deepEqual(read([broken({ code: 'a' }), broken({ code: 'b' })]).error, { code: 'a' })
    assert.deepEqual(read([said, broken()]).error, {})
    assert.equal(read([{ ...said, error: { code: 'a' } }]).error, undefined)
  })

  it('are counted by all that is said in them', () => {
    const fn = { name: 'weather', arguments: '{"city":"Oslo"}' }
    const rows: [output: Json, text: string][] = [
      [{ content: 'Hello there', refusal: 'no' }, 'Hello thereno'],
      [{ content: 'a', reasoning_content: 'b', reasoning: 'c' }, 'ab'],
      [{ content: 'a', reasoning_content: null, reasoning: 'long words' }, 'along words'],
      [{ content: [{ text: 'one' }, { text: 7 }, null, 'x', { text: ' two' }] }, 'one two'],
      [{ tool_calls: [{ function: fn }, { function: null }, null] }, `${fn.name}${fn.arguments}`],
      [{ function_call: fn }, `${fn.name}${fn.arguments}`],
      [{ content: 7, tool_calls: 'x', function_call: 'y' }, ''],
    ]
    for (const [message, text] of rows) {
      assert.equal(read([{ message }]).estimateOutput(), estimateTokens(text), JSON.stringify(message))
      if (text !== '') {
        const { reader } = readAll([chunk({ delta: message })])
        assert.ok(Math.abs(reader.estimatedOutput - estimateTokens(text)) <= 2, JSON.stringify(message))
      }
    }
    assert.equal(read([null, 'x', { message: null }]).estimateOutput(), 0)
  })

  it('tell the searches and the tier of service of their call', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, server_tool_use: { web_search_requests: 3 } }
    assert.equal(read([said], { usage }).usage.webSearches, 3)
    assert.equal(read([said], { usage: { ...usage, server_tool_use: null } }).usage.webSearches, undefined)
    const tier = (service_tier: unknown) => {
      const { reader } = readAll([chunk({ delta: {} }, { usage, service_tier })])
      const told = reader.usage.serviceTier
      assert.equal(told || undefined, read([said], { service_tier, usage }).usage.serviceTier)
      assert.equal(told, read([said], { service_tier }).usage.serviceTier)
      return told
    }
    const names = ['flex', 'priority', 'x'.repeat(32)]
    assert.deepEqual(names.map(tier), names)
    assert.deepEqual(['FLEX', 'Priority'].map(tier), ['flex', 'priority'])
    for (const usual of ['default', 'standard', 'on_demand', 'ON_DEMAND']) assert.ok(!tier(usual), usual)
    for (const none of ['auto', '', null, 7, 'a b', 'a-b', 'x'.repeat(33)])
      assert.equal(tier(none), undefined, String(none))
    assert.equal('serviceTier' in read([said], { usage }).usage, false)
  })
})
