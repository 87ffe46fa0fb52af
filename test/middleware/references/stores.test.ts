import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryKeptStore } from '../../../lib/middleware/references/index.ts'
import { openDatabase, SqlKeptStore } from '../../../lib/stores/sql/index.ts'
import { keptStoreContract } from '../../contracts/kept-store.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { temporaryDatabase } from '../../stores/sql/temporary-database.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

keptStoreContract('memory', async () => {
  const store = new MemoryKeptStore()
  return { stores: [store, store], close: async () => {} }
})

const openTwice = async (url: string) => {
  const one = await openDatabase(url)
  const other = await openDatabase(url)
  const close = () => Promise.all([one.destroy(), other.destroy()]).then(() => {})
  return { stores: [new SqlKeptStore(one), new SqlKeptStore(other)] as const, close }
}

keptStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const { stores, close } = await openTwice(url)
  return { stores, close: () => close().then(remove) }
})

keptStoreContract('Postgres', async () => openTwice(await postgresUrl()), WITHOUT_POSTGRES)

describe('kept things in memory', () => {
  it('are bounded: the oldest give way', async () => {
    const store = new MemoryKeptStore({ maxIds: 2 })
    const thing = {
      kind: 'file',
      account: 'acme',
      key: null,
      line: 'line-0',
      model: null,
      tokens: 0,
      createdAt: 1,
    }
    for (const id of ['a', 'b', 'c']) await store.remember([{ ...thing, id, expiresAt: null }])
    const names = ['a', 'b', 'c'].map((id) => ({ kind: 'file', id }))
    const found = await store.find('acme', names)
    assert.deepEqual(
      found.map(({ id }) => id),
      ['b', 'c'],
    )
  })

  it('a bound that is none is refused', () => {
    assert.throws(() => new MemoryKeptStore({ maxIds: 0 }), /MemoryKeptStore: "maxIds"/)
  })
})
