import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { SpentPieces, SpentReads } from '../../../lib/middleware/forward/spent-pieces.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))
/** A piece with memory of its own, as a connection reads it. */
const piece = (text = 'piece') => {
  const own = Buffer.from(new ArrayBuffer(text.length))
  own.write(text)
  return own
}
const isFree = ({ length }: Buffer) => length === 0

describe('pieces that go through a pipe', () => {
  it('are freed once all that were added are written', async () => {
    let unwritten = 1
    const sent = new SpentPieces(() => unwritten)
    const [one, two, three] = [piece(), piece(), piece()]
    sent.add(one)
    sent.add(two)
    sent.freeWritten()
    await turn()
    assert.deepEqual([one, two].map(isFree), [false, false])
    unwritten = 0
    sent.add(three)
    await turn()
    assert.deepEqual([one, two, three].map(isFree), [true, true, false], 'the last is not written')
    sent.freeWritten()
    await turn()
    assert.equal(isFree(three), true)
  })

  it('are asked about only where there are some', () => {
    const sent = new SpentPieces(() => assert.fail('there is none'))
    sent.freeWritten()
  })

  it('are left to the garbage collector where too many are unwritten', async () => {
    let unwritten = 1
    const sent = new SpentPieces(() => unwritten)
    const pieces = Array.from({ length: 257 }, () => piece())
    for (const each of pieces.slice(0, 256)) sent.add(each)
    unwritten = 0
    sent.freeWritten()
    await turn()
    assert.deepEqual(pieces.map(isFree), [...Array(256).fill(true), false])
    unwritten = 1
    const more = Array.from({ length: 257 }, () => piece())
    for (const each of more) sent.add(each)
    unwritten = 0
    sent.freeWritten()
    await turn()
    assert.deepEqual(more.map(isFree), [...Array(256).fill(false), true])
  })
})

describe('what is read from a connection', () => {
  function reading() {
    const socket = new EventEmitter()
    const parsed: Buffer[] = []
    socket.on('data', (read: Buffer) => parsed.push(read))
    const reads = new SpentReads()
    reads.watch(socket as unknown as Socket)
    return { reads, parsed, read: (bytes: Buffer) => void socket.emit('data', bytes) }
  }

  it('is freed where the body was copied out of it', async () => {
    const { reads, read, parsed } = reading()
    const [first, second] = [piece(), piece()]
    read(first)
    reads.compare(piece())
    read(second)
    reads.compare(piece())
    await turn()
    assert.deepEqual([first, second].map(isFree), [false, true])
    assert.deepEqual(parsed, [first, second])
  })

  it('is kept where the body is a part of it', async () => {
    const { reads, read } = reading()
    for (let i = 0; i < 3; i++) {
      const bytes = piece()
      read(bytes)
      reads.compare(bytes.subarray(1))
      await turn()
      assert.equal(isFree(bytes), false)
    }
  })

  it('is freed for good once one was copied', async () => {
    const { reads, read } = reading()
    reads.compare(piece())
    const bytes = piece()
    read(bytes)
    reads.compare(bytes)
    const next = piece()
    read(next)
    await turn()
    assert.equal(isFree(next), true)
  })

  it('is known before the parser has it', async () => {
    const socket = new EventEmitter()
    const reads = new SpentReads()
    socket.on('data', (bytes: Buffer) => reads.compare(bytes))
    reads.watch(socket as unknown as Socket)
    const bytes = piece()
    socket.emit('data', bytes)
    await turn()
    assert.equal(isFree(bytes), false)
  })
})
