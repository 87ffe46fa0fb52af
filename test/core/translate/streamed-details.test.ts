import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatChunk } from '../../support/scripted-upstream.ts'
import { messageOf } from './accumulate.ts'
import { relayTranslated } from './relayed.ts'

const FORMAT = 'anthropic-claude-v1'
const END = [chatChunk({}, 'stop'), 'data: [DONE]\n\n']

/** What a caller gets of these deltas, and how many parts were left out. */
function told(...deltas: readonly object[]) {
  const stream = [...deltas.map((delta) => chatChunk(delta)), ...END].join('')
  const { text, end, skipped } = relayTranslated('openai', stream)
  assert.equal(end, 'complete')
  return { content: messageOf(text).content, skipped }
}

const detail = (members: object) => ({ reasoning_details: [{ format: FORMAT, ...members }] })
const thinking = (text: string, signature = 'unsigned:openai-style-line') => ({
  type: 'thinking',
  thinking: text,
  signature,
})
const ANSWER = { content: 'Hello' }
const SAID = { type: 'text', text: 'Hello' }

describe('details of reasoning in a stream', () => {
  it('that repeat its text add nothing', () => {
    const thought = { reasoning_content: 'hmm', ...detail({ type: 'reasoning.text', text: 'hmm' }) }
    assert.deepEqual(told(thought, ANSWER), { content: [thinking('hmm'), SAID], skipped: 0 })
  })

  it('with a signature sign what was thought before, also beside its text', () => {
    for (const text of [undefined, 'hmm']) {
      const signed = detail({ type: 'reasoning.text', text, signature: 'sig' })
      const { content, skipped } = told({ reasoning_content: 'hmm' }, signed, ANSWER)
      assert.deepEqual([content, skipped], [[thinking('hmm', 'sig'), SAID], 0])
    }
  })

  it('with a signature end its thinking: what is thought then is another block', () => {
    const signed = (signature: string) => detail({ type: 'reasoning.text', signature })
    const [first, second] = ['one', 'two'].map((text) => ({ reasoning_content: text }))
    const { content } = told(first!, signed('sig 1'), second!, signed('sig 2'), ANSWER)
    assert.deepEqual(content, [thinking('one', 'sig 1'), thinking('two', 'sig 2'), SAID])
  })

  it('that are encrypted are a block of their own', () => {
    const { content, skipped } = told(detail({ type: 'reasoning.encrypted', data: 'xyz' }), ANSWER)
    assert.deepEqual([content, skipped], [[{ type: 'redacted_thinking', data: 'xyz' }, SAID], 0])
  })

  const strange: [what: string, given: readonly object[]][] = [
    ['of another format', [{ reasoning_content: 'hmm' }, detail({ format: 'other', signature: 'sig' })]],
    ['with neither text, data nor signature', [{ reasoning_content: 'hmm' }, detail({ id: 'r1' })]],
    ['whose signature is none', [{ reasoning_content: 'hmm' }, detail({ signature: 7 })]],
  ]
  for (const [what, given] of strange)
    it(`${what} are left out and counted, and sign nothing`, () => {
      assert.deepEqual(told(...given, ANSWER), { content: [thinking('hmm'), SAID], skipped: 1 })
    })

  it('with a signature are left out and counted where nothing was thought, or something was said since', () => {
    const signed = detail({ type: 'reasoning.text', signature: 'sig' })
    assert.deepEqual(told(signed, ANSWER), { content: [SAID], skipped: 1 })
    const late = told({ reasoning_content: 'hmm' }, ANSWER, signed)
    assert.deepEqual(late, { content: [thinking('hmm'), SAID], skipped: 1 })
  })
})
