import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, newTally, objectsIn } from '../../../lib/core/json/index.ts'
import { messages, responses } from '../../../lib/core/operations/index.ts'
import { translationOf, translationsOf } from '../../../lib/core/translate/index.ts'
import { isSealed, sealedToolId, sealOf, toolId } from '../../../lib/core/translate/parts/tool-ids.ts'
import { changedNames, toolName } from '../../../lib/core/translate/parts/tool-names.ts'
import { ask, chat, message, tool } from './requests.ts'

const EXTRA = { google: { thought_signature: 'sig+/=' } }
const SEALED = sealedToolId('call_1', EXTRA)

describe('what a line wants back with a call', () => {
  it('stands behind the id, and is found there again', () => {
    assert.equal(SEALED, `call_1__sealed__${Buffer.from(JSON.stringify(EXTRA)).toString('base64url')}`)
    assert.deepEqual(sealOf(SEALED, newTally()), { extra_content: EXTRA })
    assert.deepEqual(
      [toolId(SEALED), isSealed(SEALED), isSealed('call_1'), isSealed(7)],
      ['call_1', true, false, false],
    )
    assert.deepEqual(sealOf(sealedToolId('', EXTRA), newTally()), { extra_content: EXTRA })
  })

  it('is nothing but an object, and no longer than 64 KiB', () => {
    for (const extra of [undefined, null, 'x', 7, [1]]) assert.equal(sealedToolId('call_1', extra), 'call_1')
    const ofLength = (length: number) => {
      const bytes = (length * 3) / 4
      return sealedToolId('a', { x: 'y'.repeat(bytes - '{"x":""}'.length) })
    }
    assert.equal(ofLength(64 * 1024).length, 'a__sealed__'.length + 64 * 1024)
    assert.equal(ofLength(64 * 1024 + 4), 'a')
  })

  it('is nothing where the id has none, or one that cannot be read', () => {
    for (const id of [
      'call_1',
      '',
      'call_1__sealed__',
      'call_1__sealed__x',
      `call_1__sealed__${btoa('[1]')}`,
    ])
      assert.deepEqual(sealOf(id, newTally()), {})
  })

  it('goes back to the line of a message, and of a response', () => {
    const call = {
      id: 'call_1',
      type: 'function',
      function: { name: 'f', arguments: '{}' },
      extra_content: EXTRA,
    }
    const use = { type: 'tool_use', id: SEALED, name: 'f', input: {} }
    const result = { type: 'tool_result', tool_use_id: SEALED, content: 'done' }
    const expected = [
      ...ask,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ]
    const turns = [...ask, { role: 'assistant', content: [use] }, { role: 'user', content: [result] }]
    assert.deepEqual(message.translate({ messages: turns }).messages, expected)
    const input = [
      ...ask,
      { type: 'function_call', call_id: SEALED, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: SEALED, output: 'done' },
    ]
    const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
    const direction = translationOf(responses, {
      protocol: 'openai',
      endpoints: new Set(['chat/completions']),
    })
    assert.deepEqual(direction?.request({ model: 'm', input }, context).messages, expected)
    const [first] = translationsOf(responses)
    const cleaned = first?.withoutForeign({ input: [...input, { type: 'x', call_id: 'plain' }] }) ?? {}
    assert.deepEqual(
      objectsIn(cleaned.input).map(({ call_id: id }) => id),
      [undefined, 'call_1', 'call_1', 'plain'],
    )
  })
})

describe('the texts that a request is recognized by', () => {
  it('stand in what only another line accepts, of messages too', () => {
    const [translation] = translationsOf(messages)
    const told = (block: object) =>
      translation?.foreign.some((text) => JSON.stringify({ messages: [{ content: [block] }] }).includes(text))
    assert.equal(told({ type: 'tool_use', id: SEALED }), true)
    assert.equal(told({ type: 'thinking', signature: 'unsigned:openai-style-line:reasoning' }), true)
    assert.equal(told({ type: 'thinking', signature: 'EqQB' }), false)
  })

  it('stand in what only another line accepts', () => {
    for (const translation of translationsOf(responses)) {
      const told = (body: JsonObject) =>
        translation.foreign.some((text) => JSON.stringify(body).includes(text))
      assert.equal(told({ input: [{ type: 'function_call', call_id: SEALED }] }), true)
      assert.equal(told({ input: [{ type: 'reasoning', id: 'rs_resp_c' }] }), true)
      assert.equal(
        told({
          input: [
            { type: 'reasoning', id: 'rs_1' },
            { type: 'function_call', call_id: 'c' },
          ],
        }),
        false,
      )
    }
  })
})

describe('the name of a tool on a line', () => {
  const HASHED = /^(.*)_([0-9a-f]{8})$/

  it('is as long as the line takes it', () => {
    for (const [most, long] of [
      [undefined, 64],
      [128, 128],
    ] as const) {
      assert.equal(toolName('n'.repeat(long), most), 'n'.repeat(long))
      const [, head, hash] = HASHED.exec(String(toolName('n'.repeat(long + 1), most))) ?? []
      assert.deepEqual([head, hash?.length], ['n'.repeat(long - 9), 8])
    }
  })

  it('is 128 signs at most on an anthropic line', () => {
    const nameOf = (name: string) =>
      (chat.translate({ tools: [tool(name)] }).tools as { name: string }[])[0]?.name
    assert.equal(nameOf('n'.repeat(128)), 'n'.repeat(128))
    assert.match(String(nameOf('n'.repeat(129))), /^n{119}_[0-9a-f]{8}$/)
  })

  it('has an underscore for each sign that the line refuses', () => {
    const [, head] = HASHED.exec(String(toolName('a.b/ü c-D_9'))) ?? []
    assert.equal(head, 'a_b___c-D_9')
    assert.notEqual(toolName('a.b'), toolName('a/b'))
    // The hash stays the same in every version: it stands in conversations.
    assert.equal(toolName('a.b'), 'a_b_2e7336dc')
  })

  it('is left alone where it is none', () => {
    for (const none of ['', undefined, null, 7]) assert.equal(toolName(none), none)
  })

  it('is remembered only where it was changed', () => {
    const names = changedNames(['plain', 'a.b', undefined, ''])
    assert.deepEqual([...names], [[toolName('a.b'), 'a.b']])
  })
})
