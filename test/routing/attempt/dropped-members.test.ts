import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { referencesIn } from '../../../lib/core/operations/index.ts'
import { Untranslatable } from '../../../lib/core/translate/index.ts'
import { DroppedMembers } from '../../../lib/routing/attempt/adapted-request.ts'

const json = {
  container: 'cntr_1',
  'odd.name': { file_id: 'file_1' },
  tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }, { type: 'image_generation' }],
  messages: [{ content: [{ type: 'image', source: { type: 'file', file_id: 'file_1' } }, { type: 'x' }] }],
  input: [{ type: 'item_reference', id: 'msg_1' }],
}

describe('a member that references a resource of an upstream', () => {
  const NAMING = [
    'container',
    'odd.name',
    'tools[0]',
    'messages[0].content[0].source',
    'messages[0]',
    'input',
  ]
  for (const param of NAMING) {
    it(`is not left out: ${param}`, () => {
      const dropped = new DroppedMembers({
        body: { raw: Buffer.alloc(0), json },
        references: referencesIn(json),
      })
      assert.throws(
        () => dropped.add(param),
        (error) => error instanceof Untranslatable && error.param === param,
      )
      assert.equal(dropped.reported, undefined)
    })
  }

  it('does not keep others from being left out', () => {
    const dropped = new DroppedMembers({
      body: { raw: Buffer.alloc(0), json },
      references: referencesIn(json),
    })
    dropped.add('tools[1]')
    dropped.add('messages[0].content[1]')
    assert.deepEqual(dropped.reported, ['tools[1]', 'messages[0].content[1]'])
  })
})
