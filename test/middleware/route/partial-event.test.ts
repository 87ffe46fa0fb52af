import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MAX_BLANK_LENGTH } from '../../../lib/core/protocols/index.ts'
import { PartialEvent } from '../../../lib/middleware/route/relay/partial-event.ts'

it('an event that comes in pieces is put together, and its last characters are at hand', () => {
  const partial = new PartialEvent()
  for (let round = 0; round < 2; round++) {
    assert.deepEqual([partial.size, partial.seam], [0, ''])
    let whole = ''
    for (let i = 0; i < 40; i++) {
      const piece = String.fromCharCode(97 + (i % 26)).repeat(1 + (i % 3))
      partial.add(Buffer.from(piece), `before ${whole}${piece}`)
      whole += piece
      assert.equal(partial.size, whole.length)
      assert.equal(partial.seam, whole.slice(-MAX_BLANK_LENGTH), 'and none of what is not a part of it')
    }
    assert.equal(String(partial.takeWith(Buffer.from('rest'))), `${whole}rest`)
  }
})
