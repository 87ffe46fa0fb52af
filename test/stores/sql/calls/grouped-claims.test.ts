import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openDatabase, SqlIdempotencyStore } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'

describe('claims of one key that wait for the same statement', { skip: WITHOUT_POSTGRES }, () => {
  for (const [name, firstLeaseMs, second] of [
    ['is held while the first one lasts', 60_000, 'first'],
    ['is taken over where that has run out by then', 1, undefined],
  ] as const)
    it(`are decided in their order: the record ${name}`, async (t) => {
      // Of two connections claims have one, so that all that come meanwhile go together.
      const db = await openDatabase(await postgresUrl(), { logger: recordingLogger(), poolSize: 2 })
      t.after(() => db.destroy())
      const store = new SqlIdempotencyStore(db)
      const began = Date.now()
      const claim = (id: string, owner: string, now: number, leaseMs: number) =>
        store.claim({ id, owner, fingerprint: owner, now, leaseUntil: now + leaseMs })
      const [, first, later] = await Promise.all([
        claim('other', 'other', began, 60_000),
        claim('same', 'first', began, firstLeaseMs),
        claim('same', 'later', began + 1000, 60_000),
      ])
      assert.equal(first, undefined)
      assert.equal(later?.owner, second)
      const standing = await claim('same', 'last', began + 2000, 60_000)
      const owner = second ?? 'later'
      const expiresAt = second ? began + firstLeaseMs : began + 61_000
      assert.deepEqual(standing, { owner, fingerprint: owner, state: 'running', expiresAt })
    })
})
