import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AnswerQueue } from '../../../lib/middleware/idempotency/answer-queue.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from '../../support/clock.ts'
import { clockOf as fakedClock } from './faked-clock.ts'

const MB = 1024 * 1024

/** A store that holds writes back until a test releases them, and the queue in front of it. */
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

  it('of two accounts are written at the same time, and of one account one after the other', async () => {
    const { queue: answers, store } = queue({ partBytes: 10 })
    const going: string[] = []
    const together = new Set<string>()
    const write = store.write.bind(store)
    store.write = async (id, ...rest) => {
      going.push(id)
      together.add(going.join())
      await turn()
      await write(id, ...rest)
      going.splice(going.indexOf(id), 1)
    }
    const keep = (account: string, id: string) => answers.keep(account, id, [Buffer.alloc(30)])
    const all = [keep('a', 'a1'), keep('a', 'a2'), keep('b', 'b1'), keep('b', 'b2'), keep('a', 'a3')]
    assert.deepEqual(
      await Promise.all(all),
      all.map(() => true),
    )
    assert.ok(together.has('a1,b1'), `${[...together]}`)
    for (const each of together) assert.doesNotMatch(each, /a\d.*a|b\d.*b|,.*,/)
    assert.equal(answers.bytes, 0)
  })

  it('wait for no write of another account that the store does not end', async () => {
    const { queue: answers, store, textOf } = queue()
    const write = store.write.bind(store)
    store.write = (id, ...rest) => (id === 'stuck' ? new Promise(() => {}) : write(id, ...rest))
    void answers.keep('slow', 'stuck', [Buffer.alloc(3)])
    assert.equal(await answers.keep('acme', 'a', [Buffer.from('answer of acme')]), true)
    assert.equal(textOf('a'), 'answer of acme')
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

  it('that fail cost no other call its own, and are logged once', async () => {
    const { queue: answers, store, logger } = queue()
    store.fails = (id) => id.startsWith('bad')
    const ids = ['bad1', 'good1', 'bad2', 'good2']
    const kept = await Promise.all(ids.map((id) => answers.keep(id, id, [Buffer.alloc(30)])))
    assert.deepEqual(kept, [false, true, false, true])
    assert.ok(logger.lines.length >= 1 && logger.lines.length <= 2)
  })

  it('that fail one after the other are logged once, until one is kept again', async () => {
    const { queue: answers, store, logger } = queue()
    store.fails = (id) => id.startsWith('bad')
    const told: number[] = []
    for (const id of ['bad', 'bad', 'bad', 'good', 'bad', 'good', 'good', 'bad']) {
      assert.equal(await answers.keep('acme', id, [Buffer.alloc(3)]), id === 'good')
      told.push(logger.lines.length)
    }
    assert.deepEqual(told, [1, 1, 1, 1, 2, 2, 2, 3])
  })

  for (const [what, lastMs, lostMs] of [
    ['nothing', 0, 1500],
    ['another once', 100, 3000],
    ['others for a time', 4000, 6000],
    ['others all the time', 10_000, 10_000],
  ] as const)
    it(`count as lost after ${lostMs} ms while the store writes ${what}`, async (t) => {
      const { queue: answers, store } = queue({ partBytes: 100 })
      store.write = async (id) => (id === 'mine' ? new Promise(() => {}) : undefined)
      const clock = fakedClock(t)
      let kept: boolean | undefined
      void answers.keep('acme', 'mine', [Buffer.alloc(30)]).then((is) => (kept = is))
      for (let passed = 0; passed < lostMs; passed += 100) {
        assert.equal(kept, undefined, `${passed}`)
        if (passed > 0 && passed <= lastMs) void answers.keep('other', 'theirs', [Buffer.alloc(3)])
        await turn()
        clock.tick(99)
        await turn()
        assert.equal(kept, undefined, `${passed + 99}`)
        clock.tick(1)
        await turn()
      }
      assert.equal(kept, false)
      assert.equal(answers.bytes, 0)
    })

  it('are not waited for while the store writes nothing', async () => {
    const { queue: answers } = queue({ held: true })
    const startedAt = performance.now()
    assert.equal(await answers.keep('acme', 'a', [Buffer.alloc(30)]), false)
    assert.ok(performance.now() - startedAt < 5000)
    assert.equal(answers.bytes, 0)
  })
})
