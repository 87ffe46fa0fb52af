import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import { BodyCollector } from '../../../lib/core/bytes/index.ts'
import {
  collecting,
  MAX_ERROR_BODY_BYTES,
  wholeOf,
} from '../../../lib/middleware/route/attempt/collected-body.ts'

const piece = Buffer.alloc(40_000, 'a')

describe('a body of a line that comes in pieces', () => {
  for (const status of [200, 404, 500, null])
    it(`is read whole, or of an error only its beginning: ${status}`, () => {
      const begun = collecting(piece, status)
      const more = [begun.push(piece), begun.push(piece)]
      assert.deepEqual(more, status === 200 ? [true, true] : [false, false])
      assert.equal(wholeOf(begun).length, status === 200 ? 120_000 : 40_000)
    })

  it('is read of an error up to the bound, with its last byte', () => {
    const error = collecting(undefined, 500)
    assert.equal(error.push(Buffer.alloc(MAX_ERROR_BODY_BYTES)), true)
    assert.equal(error.push(Buffer.alloc(1)), false)
    assert.equal(wholeOf(error).length, 65_536)
  })

  it('goes on with what has been collected, whatever the status', () => {
    const begun = new BodyCollector()
    assert.equal(collecting(begun, 500), begun)
  })

  it('is empty where nothing came, and the piece itself where only one did', () => {
    assert.equal(wholeOf(undefined).length, 0)
    assert.equal(wholeOf(piece), piece)
    assert.equal(wholeOf(collecting(undefined, 200)).length, 0)
  })
})
