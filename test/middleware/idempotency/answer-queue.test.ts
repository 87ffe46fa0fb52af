import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AnswerQueue } from '../../../lib/middleware/idempotency/answer-queue.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from '../../support/clock.ts'

const MB = 1024 * 1024

/** A store that holds writes back until it is told to go on, and the queue in front of it. */
function queue({ partBytes = 10, held = false } = {}) {
  const logger = recordingLogger()
  const writes: string[] = []
  const dropped: string[] = []
  const kept = new Map<string, Uint8Array[]>()
  const gate = Promise.withResolvers<void>()
  if (!held) gate.resolve()
  const store = {
    partBytes,
    fails: (_id: string) => false,
    async write(id: string, part: number, bytes: Uint8Array) {
      writes.push(`${id}.${part}`)
      await gate.promise
      if (store.fails(id)) throw new Error('the store fails')
      const parts = kept.get(id) ?? []
      parts[part] = bytes
      kept.set(id, parts)
    },
    async drop(id: string) {
      dropped.push(id)
    },
  }
  const textOf = (id: string) => Buffer.concat(kept.get(id) ?? []).toString()
  return { queue: new AnswerQueue(store, logger), store, writes, kept, textOf, logger, gate }
}

describe('answers on their way to their store', () => {
  it('come as they are, whatever pieces they are given in', async () => {
    const { queue: answers, kept, textOf } = queue()
    const text = 'abcdefghijklmnopqrstuvwxyz'.repeat(4)
    for (const step of [1, 3, 9, 10, 11, 25, 200]) {
      const pieces: Buffer[] = []
      for (let at = 0; at < text.length; at += step) pieces.push(Buffer.from(text.slice(at, at + step)))
      assert.equal(await answers.keep('acme', `a${step}`, pieces), true)
      assert.equal(textOf(`a${step}`), text)
      assert.equal(kept.get(`a${step}`)?.length, answers.partsOf(pieces))
    }
    assert.equal(answers.bytes, 0)
  })

  it('take turns by account, however many one account has', async (t) => {
    // A store that takes no time: the pauses after slow writes would change the order.
    clockOf(t).stop()
    const { queue: answers, writes } = queue()
    const body = [Buffer.alloc(100)]
    const greedy = ['g1', 'g2', 'g3'].map((id) => answers.keep('greedy', id, body))
    const modest = answers.keep('modest', 'm', body)
    assert.equal(await modest, true)
    assert.ok(!writes.some((write) => write.startsWith('g3')), `${writes}`)
    assert.deepEqual(await Promise.all(greedy), [true, true, true])
  })

  it('are refused an account that has a fifth of all waiting, and no other', async () => {
    const { queue: answers, gate } = queue({ partBytes: MB, held: true })
    const body = [Buffer.alloc(8 * MB)]
    const greedy = Array.from({ length: 20 }, (_, i) => answers.keep('greedy', `g${i}`, body))
    assert.ok(answers.bytes <= 64 * MB, `${answers.bytes}`)
    const others = ['a', 'b', 'c'].map((account) => answers.keep(account, account, body))
    gate.resolve()
    assert.deepEqual(await Promise.all(others), [true, true, true])
    const kept = (await Promise.all(greedy)).filter(Boolean)
    assert.ok(kept.length >= 4 && kept.length < 8, `${kept.length}`)
    assert.equal(answers.bytes, 0)
  })

  it('that fail cost nobody else their own, and are told once', async () => {
    const { queue: answers, store, logger } = queue()
    store.fails = (id) => id.startsWith('bad')
    const ids = ['bad1', 'good1', 'bad2', 'good2']
    const kept = await Promise.all(ids.map((id) => answers.keep(id, id, [Buffer.alloc(30)])))
    assert.deepEqual(kept, [false, true, false, true])
    assert.ok(logger.lines.length >= 1 && logger.lines.length <= 2)
  })

  it('are not waited for while the store writes nothing', async () => {
    const { queue: answers } = queue({ held: true })
    const startedAt = performance.now()
    assert.equal(await answers.keep('acme', 'a', [Buffer.alloc(30)]), false)
    assert.ok(performance.now() - startedAt < 5000)
    assert.equal(answers.bytes, 0)
  })
})
