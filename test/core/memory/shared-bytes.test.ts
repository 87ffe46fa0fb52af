import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BodyCollector, SharedBytes } from '../../../lib/core/memory/index.ts'

describe('memory that accounts share', () => {
  it('gives an account a quarter of what is free', () => {
    const shared = new SharedBytes(400)
    assert.deepEqual(
      [shared.hasRoom('a', 100), shared.hasRoom('a', 101), shared.hasRoom('a')],
      [true, false, true],
    )
    shared.add('a', 60)
    // 340 are free: 85 for each.
    assert.deepEqual([shared.hasRoom('a', 25), shared.hasRoom('a', 26)], [true, false])
    assert.deepEqual([shared.hasRoom('b', 85), shared.hasRoom('b', 86)], [true, false])
    shared.add('a', 40)
    assert.deepEqual([shared.size, shared.hasRoom('a'), shared.hasRoom('b', 75)], [100, false, true])
  })

  it('can be used again after its release', () => {
    const shared = new SharedBytes(400)
    shared.add('a', 80)
    shared.add('b', 20)
    shared.remove('a', 50)
    assert.equal(shared.size, 50)
    // 350 are free: 87.5 for each, of which one has 30.
    assert.deepEqual([shared.hasRoom('a', 57), shared.hasRoom('a', 58)], [true, false])
    shared.remove('a', 30)
    shared.remove('b', 20)
    assert.deepEqual([shared.size, shared.hasRoom('a', 100), shared.hasRoom('b', 100)], [0, true, true])
    shared.remove('c', 0)
    assert.equal(shared.hasRoom('c', 100), true)
  })
})

describe('the chunks of a collected body', () => {
  it('are copied together if they are small, and kept as they came if they are not', () => {
    const body = new BodyCollector()
    const large = [Buffer.alloc(4096, 'b'), Buffer.alloc(5000, 'c')]
    const small = (sign: string, length = 10) => body.push(Buffer.alloc(length, sign))
    small('a')
    for (const chunk of large) body.push(chunk)
    small('d', 4095)
    small('e')
    small('f')
    const { chunks } = body
    assert.deepEqual([chunks[1] === large[0], chunks[2] === large[1]], [true, true])
    assert.deepEqual(
      chunks.map(({ length }) => length),
      [10, 4096, 5000, 4095 + 20],
    )
  })

  it('start with a block no larger than the received bytes, and at most 64 KiB', () => {
    const body = new BodyCollector()
    for (let i = 0; i < 300; i++) body.push(Buffer.alloc(1000, 'x'))
    const sizes = body.chunks.map(({ length }) => length)
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      300_000,
    )
    assert.deepEqual(sizes.slice(0, 5), [1000, 2000, 4000, 8000, 16_000])
    assert.ok(Math.max(...sizes) === 65_000 && sizes.length < 12)
  })

  it('take 256 MiB together at most by default', () => {
    const body = new BodyCollector()
    const chunk = Buffer.alloc(64 * 1024 * 1024)
    const taken = Array.from({ length: 4 }, () => body.push(chunk))
    assert.deepEqual([taken, body.overflowed], [[true, true, true, true], false])
    assert.deepEqual(
      [body.push(Buffer.alloc(1)), body.overflowed, body.push(Buffer.alloc(0))],
      [false, true, false],
    )
    const empty = new BodyCollector()
    assert.deepEqual([empty.chunks, empty.take().length], [[], 0])
  })
})
