import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'
import { translationsOf } from '../../../lib/core/translate/index.ts'
import { sealedToolId } from '../../../lib/core/translate/tool-ids.ts'

type Body = Record<string, unknown>

/** A request as lines of the caller's own protocol get it; fails where the caller's object is changed. */
function cleaned(operation: Operation, json: Body): Body {
  const [translation] = translationsOf(operation)
  assert.ok(translation)
  const before = structuredClone(json)
  const made = translation.withoutForeign(json)
  assert.deepEqual(json, before)
  return { ...made }
}

describe('reasoning from a translated answer is not sent to a line that did not produce it:', () => {
  it('in the items of a request for a response', () => {
    const own = { type: 'reasoning', id: 'rs_1', summary: [] }
    const foreign = { type: 'reasoning', id: 'rs_resp_1', summary: [] }
    const others = [{ role: 'user', content: 'Hi' }, { id: 7 }, 'rs_resp_1', null]
    const json = { model: 'm', input: [own, foreign, ...others] }
    assert.deepEqual(cleaned(responses, json), { model: 'm', input: [own, ...others] })
    for (const input of ['rs_resp_1', null, undefined])
      assert.deepEqual(cleaned(responses, { model: 'm', input }), { model: 'm', input })
  })

  it('in the turns of messages, with the citations that only another protocol has', () => {
    const signed = { type: 'thinking', thinking: 'a', signature: 'EqQB' }
    const foreign = { type: 'thinking', thinking: 'b', signature: 'unsigned:openai-style-line' }
    const text = { type: 'text', text: 'c' }
    const cites = (...indexes: string[]) => ({
      ...text,
      citations: indexes.map((encrypted_index) => ({ url: 'https://a.test', encrypted_index })),
    })
    const unsigned = 'unsigned:openai-style-line'
    const turns = (...content: unknown[]) =>
      cleaned(messages, { model: 'm', messages: [{ role: 'assistant', content }] }).messages
    assert.deepEqual(turns(signed, foreign, text), [{ role: 'assistant', content: [signed, text] }])
    assert.deepEqual(turns(foreign), [], 'an empty turn is refused, too')
    assert.deepEqual(turns(null, foreign, 'x'), [{ role: 'assistant', content: [null, 'x'] }])
    assert.deepEqual(turns({ ...text, citations: [null] }), [
      { role: 'assistant', content: [{ ...text, citations: [null] }] },
    ])
    assert.deepEqual(turns(cites(unsigned)), [{ role: 'assistant', content: [text] }])
    assert.deepEqual(turns(cites(unsigned, 'signed')), [{ role: 'assistant', content: [cites('signed')] }])
    assert.deepEqual(turns(cites('signed'), 'text'), [
      { role: 'assistant', content: [cites('signed'), 'text'] },
    ])
    for (const given of ['text', null, [{ role: 'user', content: 'Hi' }, 'turn']])
      assert.deepEqual(cleaned(messages, { messages: given }), { messages: given })
  })

  it('nor in the ids of tools, which are plain again in calls and their results', () => {
    const sealed = sealedToolId('call_1', { google: { thought_signature: 's' } })
    const content = [
      { type: 'tool_use', id: sealed, name: 'f', input: {} },
      { type: 'tool_result', tool_use_id: sealed, content: 'x' },
      { type: 'tool_use', id: 'call_2', name: 'f', input: {} },
    ]
    assert.notEqual(sealed, 'call_1')
    assert.deepEqual(cleaned(messages, { messages: [{ role: 'user', content }] }).messages, [
      {
        role: 'user',
        content: [{ ...content[0], id: 'call_1' }, { ...content[1], tool_use_id: 'call_1' }, content[2]],
      },
    ])
  })

  it('in the messages of a chat', () => {
    const detail = (format: string) => ({
      type: 'reasoning.text',
      index: 0,
      length: 1,
      signature: 's',
      format,
    })
    const foreign = {
      role: 'assistant',
      content: 'a',
      reasoning_content: 'b',
      reasoning_details: [detail('anthropic-claude-v1')],
    }
    const other = { ...foreign, reasoning_details: [detail('other')] }
    assert.deepEqual(cleaned(chatCompletions, { model: 'm', messages: [foreign, other, 'x'] }), {
      model: 'm',
      messages: [{ role: 'assistant', content: 'a' }, other, 'x'],
    })
    for (const given of ['text', null])
      assert.deepEqual(cleaned(chatCompletions, { messages: given }), { messages: given })
  })
})
