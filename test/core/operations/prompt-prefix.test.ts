import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'

const LONG = 'x'.repeat(3000)
const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }))
const picture = { type: 'image_url', image_url: { url: 'https://a.test/b.png' } }

function prefixOf(path: string, json: Record<string, unknown>): string {
  const operation = OPERATIONS.find((one) => one.path === path)
  assert.ok(operation, path)
  return operation.promptPrefix(json)
}

describe('the beginning of a prompt, which requests with the same cached prompt have in common', () => {
  const chat = (...messages: object[]) => prefixOf('/v1/chat/completions', { messages })

  it('has who said what, message by message, of a chat', () => {
    assert.equal(
      chat({ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi' }),
      'system:Be brief.\nuser:Hi\n',
    )
  })

  it('has the texts of a chat’s parts one behind the other, without the rest', () => {
    assert.equal(chat({ role: 'user', content: [...parts('Look', ' here'), picture] }), 'user:Look here\n')
    assert.equal(
      chat({ role: 'assistant', content: null }, { role: 'user', content: 'Hi' }),
      'assistant:\nuser:Hi\n',
    )
  })

  it('is the same for a text and for the same text as a part', () => {
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const of = (content: unknown) => prefixOf(path, { messages: [{ role: 'user', content }] })
      assert.equal(of('Look'), of(parts('Look')), path)
      assert.notEqual(of('Look'), of('Book'), path)
    }
  })

  it('has the instructions first', () => {
    const messages = [{ role: 'user', content: 'Hi' }]
    const said = prefixOf('/v1/messages', { system: 'Be brief.', messages })
    assert.ok(said.startsWith('Be brief.') && said.includes('Hi'), said)
    assert.equal(prefixOf('/v1/messages', { system: parts('Be brief.'), messages }), said)
    const response = prefixOf('/v1/responses', { instructions: 'Be brief.', input: 'Hi' })
    assert.ok(response.startsWith('Be brief.') && response.includes('Hi'), response)
  })

  it('has who said what, item by item, of a response', () => {
    const input = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: parts('Ho', '!') },
      { type: 'function_call' },
    ]
    assert.equal(prefixOf('/v1/responses', { input }), 'user:Hi\nassistant:Ho!\n:\n')
    assert.equal(prefixOf('/v1/responses', { instructions: input.slice(0, 1), input: 'So' }), 'user:Hi\nSo\n')
    assert.equal(prefixOf('/v1/responses', { instructions: null, input: null }), '')
  })

  it('has the first text, or the first tokens, of an input that is read as it is', () => {
    const of = (input: unknown) => prefixOf('/v1/embeddings', { input })
    const many = Array.from({ length: 300 }, (_, i) => i)
    assert.deepEqual([of('one'), of(['one', 'two']), of([1, 2, 3])], ['one', 'one', '1 2 3'])
    assert.deepEqual([of([[1, 2], [3]]), of(many)], ['1 2', many.slice(0, 256).join(' ')])
  })

  it('has 1024 characters at most', () => {
    const bodies: Record<string, Record<string, unknown>> = {
      '/v1/chat/completions': { messages: [{ role: 'user', content: LONG }] },
      '/v1/completions': { prompt: LONG },
      '/v1/messages': { system: LONG, messages: [{ role: 'user', content: LONG }] },
      '/v1/responses': { instructions: LONG, input: LONG },
      '/v1/embeddings': { input: LONG },
      '/v1/rerank': { query: LONG },
      '/v1/images/generations': { prompt: LONG },
      '/v1/images/edits': { prompt: LONG },
    }
    for (const [path, json] of Object.entries(bodies)) assert.equal(prefixOf(path, json).length, 1024, path)
  })
})
