import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { IdempotencyRecord, IdempotencyStore } from '../../lib/middleware/idempotency/index.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** A store to try, further handles of it as other processes would have, and how to be done with it. */
export interface IdempotencyStoreUnderTest {
  stores: readonly [IdempotencyStore, ...IdempotencyStore[]]
  /** Whether `prune` forgets records. Defaults to true. */
  prunes?: boolean
  close(): Promise<void>
}

/** Near the present, as Redis counts a key's life in real time. */
const START = Date.now()
const LEASE = 60_000
const KEEP = 86_400_000

let made = 0
const freshId = () => `record-${++made}`

/** The contract of every store of Idempotency-Keys, whatever it keeps its records in. None of these tests waits. */
export function idempotencyStoreContract(
  name: string,
  open: () => Promise<IdempotencyStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`idempotency store: ${name}`, { skip }, () => {
    let tested: IdempotencyStoreUnderTest
    let store: IdempotencyStore
    const cleanUp = cleaningUp()
    before(async () => {
      tested = await open()
      cleanUp.after(() => tested.close())
      store = tested.stores[0]
    })

    const claim = (id: string, owner: string, now = START, fingerprint = 'f') =>
      store.claim({ id, owner, fingerprint, now, leaseUntil: now + LEASE })

    it('returns the conflicting record as it was claimed', async () => {
      const id = freshId()
      assert.equal(await claim(id, 'a', START, 'content'), undefined)
      const running = { owner: 'a', fingerprint: 'content', state: 'running', expiresAt: START + LEASE }
      assert.deepEqual(await claim(id, 'b', START + 1), running)
      assert.equal(await store.complete({ id, owner: 'a' }, START + KEEP), true)
      assert.deepEqual(await claim(id, 'b', START + KEEP - 1), {
        ...running,
        state: 'completed',
        expiresAt: START + KEEP,
      })
    })

    it('returns the answer of a completion until the record expires, and none of an earlier record', async () => {
      const id = freshId()
      const answer = JSON.stringify({ body: 'ümlaut \u0000 😀 '.repeat(1000) })
      await claim(id, 'a')
      assert.equal((await claim(id, 'b'))?.answer, undefined)
      assert.equal(await store.complete({ id, owner: 'a' }, START + KEEP, answer), true)
      assert.equal((await claim(id, 'b'))?.answer, answer)
      assert.equal(await store.complete({ id, owner: 'b' }, START + KEEP, 'of another'), false)
      assert.equal((await claim(id, 'b'))?.answer, answer)
      assert.equal(await claim(id, 'b', START + KEEP), undefined)
      assert.equal((await claim(id, 'c', START + KEEP))?.answer, undefined)
      assert.equal(await store.complete({ id, owner: 'b' }, START + 2 * KEEP), true)
      assert.equal((await claim(id, 'c', START + KEEP))?.answer, undefined)
    })

    it('gives a record to exactly one of many concurrent claims', async () => {
      const id = freshId()
      const all = await Promise.all(
        Array.from({ length: 60 }, (_, i) => {
          const { stores } = tested
          const { length } = stores
          const one = stores[i % length] as IdempotencyStore
          return one.claim({
            id,
            owner: `o${i}`,
            fingerprint: `f${i}`,
            now: START,
            leaseUntil: START + LEASE,
          })
        }),
      )
      const winners = all.flatMap((standing, i) => (standing === undefined ? [`o${i}`] : []))
      assert.equal(winners.length, 1)
      for (const standing of all) if (standing) assert.equal(standing.owner, winners[0])
    })

    it('does not change records of other ids and owners', async () => {
      const [one, other] = [freshId(), freshId()]
      await claim(one, 'a')
      assert.equal(await claim(other, 'b'), undefined)
      await store.release({ id: one, owner: 'b' })
      assert.equal((await claim(one, 'c'))?.owner, 'a')
      assert.deepEqual(
        await store.renew(
          [
            { id: one, owner: 'a' },
            { id: one, owner: 'b' },
            { id: other, owner: 'a' },
            { id: other, owner: 'b' },
            { id: freshId(), owner: 'a' },
          ],
          START + LEASE,
        ),
        [true, false, false, true, false],
      )
      assert.deepEqual(await store.renew([], START), [])
    })

    it('renews many claims at once', async () => {
      const claims = Array.from({ length: 250 }, (_, i) => ({ id: freshId(), owner: `o${i}` }))
      for (const { id, owner } of claims) await claim(id, owner)
      const asked = claims.map(({ id, owner }, i) => ({ id, owner: i % 3 === 0 ? 'nobody' : owner }))
      assert.deepEqual(
        await store.renew(asked, START + 2 * LEASE),
        asked.map((_, i) => i % 3 !== 0),
      )
    })

    it('changes nothing for an owner that has lost its claim', async () => {
      const id = freshId()
      await claim(id, 'paused')
      assert.equal((await claim(id, 'other', START + LEASE - 1))?.owner, 'paused')
      assert.equal(await claim(id, 'other', START + LEASE), undefined)
      assert.deepEqual(await store.renew([{ id, owner: 'paused' }], START + 9 * LEASE), [false])
      assert.equal(await store.complete({ id, owner: 'paused' }, START + KEEP), false)
      await store.release({ id, owner: 'paused' })
      const standing = await claim(id, 'third', START + LEASE + 1)
      assert.equal(standing?.owner, 'other')
      assert.equal(standing?.state, 'running')
    })

    it('behaves like the model for any sequence of operations', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
          const model = new Model()
          const ids = [freshId(), freshId()] as const
          let now = START
          for (const { kind, record, owner, content, wait } of operations) {
            const id = ids[record] as string
            now += wait
            const who = { id, owner }
            switch (kind) {
              case 'claim': {
                const request = { ...who, fingerprint: content, now, leaseUntil: now + LEASE }
                assert.deepEqual(await store.claim(request), model.claim(request))
                break
              }
              case 'renew':
                assert.deepEqual(await store.renew([who], now + LEASE), [model.renew(who, now + LEASE)])
                break
              case 'complete':
                assert.equal(await store.complete(who, now + KEEP), model.complete(who, now + KEEP))
                break
              case 'release':
                await store.release(who)
                model.release(who)
                break
            }
          }
        }),
        { numRuns: 40 },
      )
    })

    it('forgets expired records, and no others', async () => {
      if (tested.prunes === false) {
        assert.equal(await store.prune(START, 10), 0)
        return
      }
      await tested.close()
      tested = await open()
      store = tested.stores[0]
      const ids = Array.from({ length: 6 }, freshId) as [string, string, string, string, string, string]
      for (const [i, id] of ids.entries()) await claim(id, 'a', START + i)
      await store.complete({ id: ids[5], owner: 'a' }, START + KEEP)
      assert.equal(await store.prune(START + LEASE + 3, 2), 2)
      assert.equal(await store.prune(START + LEASE + 3, 10), 2)
      assert.equal(await store.prune(START + LEASE + 3, 10), 0)
      assert.deepEqual(await store.renew([{ id: ids[0], owner: 'a' }], START + LEASE), [false])
      assert.equal((await claim(ids[4], 'b', START + 5))?.owner, 'a')
      assert.equal((await claim(ids[5], 'b', START + LEASE + 9))?.state, 'completed')
      assert.equal(await store.prune(START + KEEP, 10), 2)
    })
  })
}

const operation = fc.record({
  kind: fc.constantFrom('claim', 'claim', 'renew', 'complete', 'release'),
  record: fc.constantFrom(0, 1),
  owner: fc.constantFrom('a', 'b', 'c'),
  content: fc.constantFrom('f', 'g'),
  wait: fc.constantFrom(0, 0, 1, LEASE / 2, LEASE - 1, LEASE, KEEP),
})

/** The rules, said plainly. */
class Model {
  readonly #records = new Map<string, IdempotencyRecord>()

  claim({ id, owner, fingerprint, now, leaseUntil }: Parameters<IdempotencyStore['claim']>[0]) {
    const standing = this.#records.get(id)
    const free = !standing || standing.expiresAt <= now
    const again = standing?.state === 'running' && standing.owner === owner
    if (!free && !again) return standing
    this.#records.set(id, { owner, fingerprint, state: 'running', expiresAt: leaseUntil })
    return undefined
  }

  renew({ id, owner }: { id: string; owner: string }, expiresAt: number): boolean {
    const standing = this.#records.get(id)
    if (standing?.owner !== owner || standing.state !== 'running') return false
    this.#records.set(id, { ...standing, expiresAt })
    return true
  }

  complete({ id, owner }: { id: string; owner: string }, expiresAt: number): boolean {
    const standing = this.#records.get(id)
    if (standing?.owner !== owner) return false
    this.#records.set(id, { ...standing, state: 'completed', expiresAt })
    return true
  }

  release({ id, owner }: { id: string; owner: string }): void {
    const standing = this.#records.get(id)
    if (standing?.owner === owner && standing.state === 'running') this.#records.delete(id)
  }
}
