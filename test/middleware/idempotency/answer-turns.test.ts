import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AnswerQueue } from '../../../lib/middleware/idempotency/answer-queue.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from './faked-clock.ts'

const MIB = 1024 * 1024

async function turns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

describe('the parts of an answer', () => {
  for (const [takesMs, pauseMs] of [
    [0, 0],
    [0.5, 0],
    [1, 1],
    [3, 3],
    [5, 5],
    [200, 5],
  ] as const)
    it(`leave the store alone for ${pauseMs} ms after each that has taken ${takesMs} ms`, async (t) => {
      const clock = clockOf(t)
      const parts: number[] = []
      const store = {
        partBytes: 10,
        async write(_id: string, part: number) {
          parts.push(part)
          clock.pass(takesMs)
        },
        async drop() {},
      }
      const answers = new AnswerQueue(store, recordingLogger())
      let kept: boolean | undefined
      void answers.keep('acme', 'a', [Buffer.alloc(30)]).then((is) => (kept = is))
      for (const written of [1, 2]) {
        await turns()
        if (pauseMs > 0) {
          assert.equal(parts.length, written)
          clock.tick(pauseMs - 1)
          await turns()
          assert.equal(parts.length, written)
          clock.tick(1)
        }
      }
      await turns()
      assert.deepEqual([parts, kept], [[0, 1, 2], true])
    })

  it('end where the answer does, with the rest', async () => {
    for (const [length, expected] of [
      [1, [1]],
      [9, [9]],
      [10, [10]],
      [11, [10, 1]],
      [20, [10, 10]],
      [25, [10, 10, 5]],
    ] as const) {
      const lengths: number[] = []
      const store = {
        partBytes: 10,
        async write(_id: string, _part: number, bytes: Uint8Array) {
          lengths.push(bytes.byteLength)
        },
        async drop() {},
      }
      const answers = new AnswerQueue(store, recordingLogger())
      assert.equal(await answers.keep('acme', 'a', [Buffer.alloc(length)]), true)
      assert.deepEqual(lengths, expected)
      assert.equal(answers.bytes, 0)
    }
  })

  it('are memory of their own, which a thread may take along', async () => {
    const seen: Uint8Array[] = []
    const store = {
      partBytes: 10,
      async write(_id: string, _part: number, bytes: Uint8Array) {
        seen.push(bytes)
      },
      async drop() {},
    }
    const given = Buffer.from('0123456789abcdef')
    await new AnswerQueue(store, recordingLogger()).keep('acme', 'a', [given])
    for (const each of seen) {
      assert.notEqual(each.buffer, given.buffer)
      assert.equal(each.buffer.byteLength, each.byteLength)
    }
    assert.equal(Buffer.concat(seen).toString(), given.toString())
  })

  it('of an answer that has failed are written no more, and the next answer of the account is', async () => {
    const written: string[] = []
    const store = {
      partBytes: 10,
      async write(id: string, part: number) {
        written.push(`${id}.${part}`)
        if (id === 'bad' && part === 1) throw new Error('no room')
      },
      async drop() {},
    }
    const logger = recordingLogger()
    const answers = new AnswerQueue(store, logger)
    const body = [Buffer.alloc(30)]
    const kept = await Promise.all([answers.keep('acme', 'bad', body), answers.keep('acme', 'good', body)])
    assert.deepEqual(kept, [false, true])
    assert.deepEqual(written, ['bad.0', 'bad.1', 'good.0', 'good.1', 'good.2'])
    assert.deepEqual(logger.lines, [
      {
        level: 'error',
        fields: { err: new Error('no room') },
        message: 'idempotency: answers cannot be kept',
      },
    ])
  })
})

describe('the bytes of answers that wait', () => {
  const piece = Buffer.alloc(16 * MIB)

  for (const [more, isRefused] of [
    [0, false],
    [1, true],
  ] as const)
    it(`may be 64 MiB of one account${more ? ', and not one more' : ''}`, async () => {
      let fail = (): void => {}
      const write = () =>
        new Promise<void>((_resolve, reject) => {
          fail = () => reject(new Error('no room'))
        })
      const store = { partBytes: 10, write, drop: async () => {} }
      const answers = new AnswerQueue(store, recordingLogger())
      let kept: boolean | undefined
      const pieces = [piece, piece, piece, piece, Buffer.alloc(more)]
      void answers.keep('acme', 'a', pieces).then((is) => (kept = is))
      await turns(3)
      assert.equal(kept, isRefused ? false : undefined)
      assert.equal(answers.bytes, isRefused ? 0 : 64 * MIB)
      fail()
      await turns(3)
      assert.deepEqual([kept, answers.bytes], [false, 0])
    })
})
