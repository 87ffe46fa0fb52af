import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { closeFrame, FrameBounds } from '../../../lib/middleware/forward/frame-bounds.ts'

/** A frame with a payload of that many bytes. */
function frame(length: number, masked: boolean): Buffer {
  const bit = masked ? 0x80 : 0
  const head =
    length < 126
      ? Buffer.from([0x82, bit + length])
      : length < 65_536
        ? Buffer.from([0x82, bit + 126, length >> 8, length & 0xff])
        : Buffer.from([0x82, bit + 127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 0xff, length & 0xff])
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0, 0x81), Buffer.alloc(length, 0x82)])
}

const frames = fc.array(fc.tuple(fc.oneof(fc.nat(300), fc.nat(70_000)), fc.boolean()), { maxLength: 6 })

describe('the bounds of frames', () => {
  it('are found in pieces of any size', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40_000 })), (list, cuts) => {
        const whole = list.map(([length, masked]) => frame(length, masked))
        const ends = new Set([0])
        let end = 0
        for (const { length } of whole) {
          end += length
          ends.add(end)
        }
        const bytes = Buffer.concat(whole)
        const bounds = new FrameBounds()
        let at = 0
        for (const cut of [...cuts, bytes.length]) {
          bounds.follow(bytes.subarray(at, at + cut))
          at = Math.min(at + cut, bytes.length)
          assert.equal(bounds.between, ends.has(at), `at ${at}`)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('are where a begun frame ends', () => {
    const bounds = new FrameBounds()
    const bytes = Buffer.concat([frame(200, true), frame(10, false)])
    bounds.follow(bytes.subarray(0, 3))
    assert.equal(bounds.finish(bytes.subarray(3)), frame(200, true).length - 3)
    assert.equal(bounds.between, true)
    assert.equal(bounds.finish(bytes), 0)
  })
})

describe('a close frame', () => {
  it('has its code and reason, and a mask for a server', () => {
    assert.deepEqual(closeFrame(1008, 'why', false), Buffer.from([0x88, 5, 3, 0xf0, ...Buffer.from('why')]))
    assert.deepEqual(closeFrame(1001, '', true), Buffer.from([0x88, 0x82, 0, 0, 0, 0, 3, 0xe9]))
  })
})
