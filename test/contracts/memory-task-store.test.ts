import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryTaskStore } from '../../lib/endpoints/video/index.ts'
import { MemoryLedger } from '../../lib/ledger/index.ts'
import { MemoryCallStore } from '../../lib/middleware/call-log/index.ts'
import { MemoryIdempotencyStore } from '../../lib/middleware/idempotency/index.ts'
import { NOON, payer, taken } from './task-samples.ts'
import { taskStoreContract } from './task-store.ts'

function openInMemory(maxFinished?: number) {
  const ledger = new MemoryLedger()
  const [claims, calls] = [new MemoryIdempotencyStore(), new MemoryCallStore()]
  const options = maxFinished === undefined ? {} : { maxFinished }
  const store = new MemoryTaskStore({ money: ledger.holds, claims, calls, ...options })
  return { stores: [store] as const, ledger, claims, calls, close: async () => {} }
}

taskStoreContract('memory', async () => openInMemory())

describe('a store of video tasks in memory', () => {
  it('forgets the oldest finished tasks, and no others', async () => {
    const tested = openInMemory(2)
    const [store] = tested.stores
    const who = await payer(tested, 1000n)
    const open = await taken(store, who)
    const ids: string[] = []
    for (let i = 0; i < 3; i++) {
      const { id } = await taken(store, who)
      ids.push(id)
      await store.observe(id, { state: 'failed' }, NOON)
    }
    const found = await store.list({}, { order: 'oldest', limit: 10 })
    assert.deepEqual(found.map(({ id }) => id).sort(), [open.id, ids[1], ids[2]].sort())
  })

  it('serves accounts unknown to its ledger only if that is configured', async () => {
    const ledger = new MemoryLedger({ unknownAccounts: 'postpaid' })
    const store = new MemoryTaskStore({ money: ledger.holds })
    const { id } = await taken(store, { account: 'anybody', key: 'any' })
    await store.observe(id, { state: 'succeeded' }, NOON)
    const { spent, violations } = await ledger.check()
    assert.deepEqual([spent, violations], [85n, []])
  })

  it('cannot be created without a ledger', () => {
    assert.throws(() => new MemoryTaskStore({} as never), /"money" must be the holds of a ledger/)
    const { holds } = new MemoryLedger()
    assert.throws(() => new MemoryTaskStore({ money: holds, maxFinished: 0 }), /"maxFinished"/)
  })
})
