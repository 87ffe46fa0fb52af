import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toolId, toolIdInAnswer } from '../../../lib/core/translate/parts/tool-ids.ts'

const DERIVED = /^call_[0-9a-f]{32}$/

describe('the id of a tool call', () => {
  it('stays as it is where every protocol accepts it', () => {
    for (const id of ['a', 'toolu_01-Ab', 'x'.repeat(40)]) assert.equal(toolId(id), id)
  })

  it('is else derived from it, the same each time, and another for another', () => {
    const odd = ['', 'x'.repeat(41), 'call.1', 'call 1', 'é', 'a\n', 'functions.f:0', 'functions.f:1']
    const derived = odd.map(toolId)
    for (const id of derived) assert.match(id, DERIVED)
    assert.equal(new Set(derived).size, odd.length)
    assert.deepEqual(odd.map(toolId), derived)
  })

  it('in an answer without one is derived from the answer and the place of the call', () => {
    assert.equal(toolIdInAnswer('call_1', 'chatcmpl-1', 0), 'call_1')
    assert.match(toolIdInAnswer('call.1', 'chatcmpl-1', 0), DERIVED)
    assert.equal(toolIdInAnswer('call.1', 'chatcmpl-1', 0), toolId('call.1'))
    const made = [undefined, '', null, 7].map((id) => toolIdInAnswer(id, 'chatcmpl-1', 0))
    assert.equal(new Set(made).size, 1)
    assert.equal(made[0], toolId('chatcmpl-1:0'))
    assert.notEqual(toolIdInAnswer(undefined, 'chatcmpl-1', 1), made[0])
    assert.notEqual(toolIdInAnswer(undefined, 'chatcmpl-2', 0), made[0])
  })
})
