import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { BodyCollector } from '../../../lib/core/memory/index.ts'
import { heldBytes } from '../../system/chaos/measures.ts'

describe('a collected body', () => {
  it('equals the received bytes, in any pieces', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.integer({ min: 4000, max: 70_000 }).map((size) => new Uint8Array(size).fill(size)),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const body = new BodyCollector()
        for (const bytes of pieces) assert.ok(body.push(Buffer.from(bytes)))
        const whole = Buffer.concat(pieces)
        assert.ok(Buffer.concat(body.chunks).equals(whole))
        assert.ok(body.take().equals(whole))
      }),
    )
  })

  it('grows after its chunks were read', () => {
    const body = new BodyCollector()
    for (const text of ['a', 'b', 'c', 'd']) {
      body.push(Buffer.from(text))
      assert.ok(body.chunks.length > 0)
    }
    assert.equal(String(body.take()), 'abcd')
  })

  it('is the chunk itself if there is only one', () => {
    const body = new BodyCollector()
    const chunk = Buffer.from('whole')
    body.push(chunk)
    assert.equal(body.take(), chunk)
  })

  it('ends at its limit, and keeps what came before', () => {
    const body = new BodyCollector(3)
    assert.deepEqual(
      ['ab', 'cd', 'e'].map((text) => body.push(Buffer.from(text))),
      [true, false, false],
    )
    assert.ok(body.overflowed)
    assert.equal(String(body.take()), 'ab')
  })

  it('takes about as much memory as its bytes, even in pieces of one byte', async () => {
    const before = await heldBytes()
    const body = new BodyCollector()
    for (let i = 0; i < 200_000; i++) body.push(Buffer.from('x'))
    const held = (await heldBytes()) - before
    assert.ok(held < 800_000, `200,000 bytes take ${held}`)
    assert.equal(body.take().length, 200_000)
  })
})
