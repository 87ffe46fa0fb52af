import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { callStoreContract, entryAt } from '../../contracts/call-store.ts'

callStoreContract('memory', async () => ({ store: new MemoryCallStore(), close: async () => {} }))

it('the memory store keeps the newest entries when it is full, in whatever order they came', async () => {
  const store = new MemoryCallStore({ maxEntries: 10 })
  const entries = Array.from({ length: 100 }, (_, i) => entryAt(1_700_000_000_000 + ((i * 37) % 100)))
  for (const entry of entries) await store.append([entry])
  const newest = entries.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, 10)
  assert.deepEqual((await store.list({ limit: 100 })).entries, newest)
  const kept = await Promise.all(entries.map(({ id }) => store.find(id)))
  assert.equal(kept.filter(Boolean).length, 10)
})

it('the memory store refuses a size it cannot have', () => {
  assert.throws(() => new MemoryCallStore({ maxEntries: 0 }), /maxEntries/)
})
