import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OutputItems } from '../../../lib/core/translate/responses-as-chat/output-items.ts'

describe('the items of a translated response', () => {
  it('are 10,000 at most, whatever their kind: each costs far more than the bytes that begin it', () => {
    const items = new OutputItems('r', { part: 'reasoning_text', isSealed: false })
    for (let i = 0; i < 4999; i++) {
      items.text('output_text', 'a')
      items.reasoning('b', 'reasoning')
    }
    items.toolArguments(items.newToolCall('call_1', { name: 'f' }), '{')
    items.text('output_text', 'a')
    items.text('output_text', 'a')
    const tooMany = { name: 'RangeError', message: /more than 10000 items/ }
    assert.throws(() => items.reasoning('b', 'reasoning'), tooMany)
    assert.throws(() => items.toolArguments(items.newToolCall('call_2', { name: 'f' }), '{'), tooMany)
  })
})
