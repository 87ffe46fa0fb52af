import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { WalletId } from '../../../../lib/ledger/index.ts'
import { ENDED_KEPT_MS } from '../../../../lib/ledger/lease.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { type EmptiedDatabase, emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS, postgresUrl } from '../support/postgres-database.ts'
import { saveLeases } from '../support/stored-leases.ts'

const MINUTE_MS = 60_000

/** A ledger whose process has not tidied yet. */
async function world(t: TestContext, emptied: () => Promise<EmptiedDatabase>) {
  const { db } = await emptied()
  const now = Date.now()
  t.mock.timers.enable({ apis: ['Date'], now })
  // Whole, so that sums are exact.
  let passed = Math.floor(performance.now())
  t.mock.method(performance, 'now', () => passed)
  const lease = (id: string, endedAt: number | null) => ({
    ...{ id, wallet: 'account:acme' as WalletId, owner: 'p', held: 0n, seq: 1, lastMoved: 1n, beats: 1 },
    ...{ renewedAt: 1, ended: endedAt === null ? null : ('closed' as const), endedAt },
  })
  const ledger = new SqlLedger(db)
  return {
    ...{ db, now, ledger, lease },
    pass: (ms: number) => {
      passed += ms
    },
    leasesLeft: async () =>
      (await db.selectFrom('leases').select('id').orderBy('id').execute()).map(({ id }) => id),
  }
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a process that renews its leases: ${name}`, { skip }, () => {
    it('deletes leases that ended ten minutes ago, and no others, once a minute', async (t) => {
      const { db, now, ledger, lease, leasesLeft, pass } = await world(t, emptied)
      const ended = now - ENDED_KEPT_MS
      await saveLeases(db, [lease('old', ended - 1), lease('just', ended), lease('open', null)])
      await ledger.renew([], now)
      assert.deepEqual(await leasesLeft(), ['just', 'open'])
      t.mock.timers.tick(10 * MINUTE_MS)
      pass(MINUTE_MS - 1)
      await ledger.renew([], now)
      assert.deepEqual(
        await leasesLeft(),
        ['just', 'open'],
        'not before a minute has passed, whatever the clock says',
      )
      pass(1)
      await ledger.renew([], now)
      assert.deepEqual(await leasesLeft(), ['open'])
    })

    it('deletes them also after its clock was set back', async (t) => {
      for (const by of [1, MINUTE_MS / 2, MINUTE_MS, 86_400_000]) {
        const { db, now, ledger, lease, leasesLeft, pass } = await world(t, emptied)
        await ledger.renew([], now)
        t.mock.timers.setTime(now + MINUTE_MS - by)
        pass(MINUTE_MS)
        await saveLeases(db, [lease('old', 1)])
        await ledger.renew([], now)
        assert.deepEqual(await leasesLeft(), [], `set back by ${by} ms`)
        t.mock.reset()
      }
    })

    it('deletes a thousand of them at a time, and goes on with the next renewal while there are more', async (t) => {
      const { db, now, ledger, lease, leasesLeft } = await world(t, emptied)
      await saveLeases(
        db,
        Array.from({ length: 2300 }, (_, i) => lease(`l${i}`, 1)),
      )
      for (const left of [1300, 300, 0]) {
        await ledger.renew([], now)
        assert.equal((await leasesLeft()).length, left)
      }
      await saveLeases(db, [lease('later', 1)])
      await ledger.renew([], now)
      assert.deepEqual(await leasesLeft(), ['later'], 'none are left: a minute passes')
    })
  })
}

describe('a lease that another connection has locked in Postgres', { skip: WITHOUT_POSTGRES }, () => {
  const emptied = emptiedDatabase(postgresUrl)

  it('is left for another time by the upkeep, which does not wait', async (t) => {
    const { db, now, ledger, lease, leasesLeft, pass } = await world(t, emptied)
    await saveLeases(db, [lease('locked', 1), lease('free', 1)])
    await db.transaction().execute(async (trx) => {
      await trx.selectFrom('leases').select('id').where('id', '=', 'locked').forUpdate().execute()
      await ledger.renew([], now)
      assert.deepEqual(await leasesLeft(), ['locked'])
    })
    pass(MINUTE_MS)
    await ledger.renew([], now)
    assert.deepEqual(await leasesLeft(), [])
  })
})
