import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  encryptedDetail,
  isOwnDetail,
  memberOf,
  reasoningIn,
  signedDetail,
  thinkingBlocks,
  UNSIGNED,
  unsignedOf,
} from '../../../lib/core/translate/parts/reasoning-details.ts'

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

  it('is told by the signature that stands for one', () => {
    for (const member of ['reasoning_content', 'reasoning'] as const)
      assert.equal(memberOf(unsignedOf(member)), member)
    for (const other of ['', 'EqQB', undefined, `${UNSIGNED}:`, `${UNSIGNED}:reasoning_content`])
      assert.equal(memberOf(other), undefined)
  })
})
