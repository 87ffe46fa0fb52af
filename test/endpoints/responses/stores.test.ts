import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryResponseStore } from '../../../lib/endpoints/responses/index.ts'
import { openDatabase, SqlResponseStore } from '../../../lib/stores/sql/index.ts'
import { responseStoreContract } from '../../contracts/response-store.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { temporaryFolder } from '../../stores/sql/temporary-database.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

responseStoreContract('memory', async () => {
  const store = new MemoryResponseStore()
  return { stores: [store, store], close: async () => {} }
})

const openTwice = async (url: string) => {
  const one = await openDatabase(url)
  const other = await openDatabase(url)
  const close = () => Promise.all([one.destroy(), other.destroy()]).then(() => {})
  return { stores: [new SqlResponseStore(one), new SqlResponseStore(other)] as const, close }
}

responseStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryFolder()
  const { stores, close } = await openTwice(url)
  return { stores, close: () => close().then(remove) }
})

responseStoreContract('Postgres', async () => openTwice(await postgresUrl()), WITHOUT_POSTGRES)

describe('responses in memory', () => {
  it('are bounded: the oldest give way', async () => {
    const store = new MemoryResponseStore({ maxIds: 2 })
    const record = { account: 'acme', line: 'line-0', model: 'chat', tokens: 1, createdAt: 1 }
    for (const id of ['a', 'b', 'c']) await store.remember({ ...record, id })
    assert.equal(await store.find('acme', 'a'), undefined)
    assert.ok(await store.find('acme', 'b'))
    assert.ok(await store.find('acme', 'c'))
  })

  it('a bound that is none is refused', () => {
    assert.throws(() => new MemoryResponseStore({ maxIds: 0 }), /MemoryResponseStore: "maxIds"/)
  })
})
