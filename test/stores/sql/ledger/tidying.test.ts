import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { WalletId } from '../../../../lib/ledger/index.ts'
import { ENDED_KEPT_MS } from '../../../../lib/ledger/lease.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { saveLeases } from '../../../../lib/stores/sql/ledger/sql-ledger-rows.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { BACKENDS, type Backend, postgresUrl } from '../postgres-database.ts'
import { open } from '../temporary-database.ts'

const MINUTE_MS = 60_000

/** A ledger whose process has not tidied yet. */
async function world(t: TestContext, url: Backend['url']) {
  const db = await open(t, await url(t))
  const now = Date.now()
  t.mock.timers.enable({ apis: ['Date'], now })
  // Whole, so that sums are exact.
  let passed = Math.floor(performance.now())
  t.mock.method(performance, 'now', () => passed)
  const lease = (id: string, endedAt: number | null) => ({
    ...{ id, wallet: 'account:acme' as WalletId, owner: 'p', held: 0n, seq: 1, lastMoved: 1n, beats: 1 },
    ...{ renewedAt: 1, ended: endedAt === null ? null : ('closed' as const), endedAt },
  })
  const wallet = (id: WalletId, leased: bigint) =>
    db.insertInto('wallets').values({ id, limited: 1, funds: 0n, spent: 0n, leased, overrun: 0n }).execute()
  const hold = (request_id: string, of: WalletId, amount: bigint) =>
    db.insertInto('budget_holds').values({ request_id, wallet: of, amount }).execute()
  const ledger = new SqlLedger(db)
  return {
    ...{ db, now, ledger, lease, wallet, hold },
    pass: (ms: number) => {
      passed += ms
    },
    leasesLeft: async () =>
      (await db.selectFrom('leases').select('id').orderBy('id').execute()).map(({ id }) => id),
    leased: async (...ids: WalletId[]) => (await ledger.wallets(ids)).map((each) => each.leased),
    holdsLeft: async () => {
      const rows = await db.selectFrom('budget_holds').select(['request_id', 'wallet']).execute()
      return rows.map(({ request_id, wallet: of }) => `${request_id} ${of}`).sort()
    },
  }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`a process that renews its leases: ${name}`, { skip }, () => {
    it('deletes leases that ended ten minutes ago, and no others, once a minute', async (t) => {
      const { db, now, ledger, lease, leasesLeft, pass } = await world(t, url)
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
        const { db, now, ledger, lease, leasesLeft, pass } = await world(t, url)
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
      const { db, now, ledger, lease, leasesLeft } = await world(t, url)
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

    it('frees what budgets hold for nobody, of each wallet what it was, and keeps what is held', async (t) => {
      const { db, now, ledger, wallet, hold, leased, holdsLeft } = await world(t, url)
      const [one, other]: WalletId[] = ['budget:b1:1', 'budget:b2:1']
      assert.ok(one && other)
      await wallet(one, 47n)
      await wallet(other, 9n)
      await hold('ended', one, 7n)
      await hold('ended', other, 4n)
      await hold('goes on', one, 40n)
      await hold('goes on', other, 5n)
      await db
        .insertInto('holds')
        .values({ request_id: 'goes on', account: 'acme', key: null, amount: 40n })
        .execute()
      await ledger.renew([], now)
      assert.deepEqual(await leased(one, other), [40n, 5n])
      assert.deepEqual(await holdsLeft(), [`goes on ${one}`, `goes on ${other}`])
    })

    it('frees a hundred of them at a time, and goes on with the next renewal while there are more', async (t) => {
      const { now, ledger, wallet, hold, leased, holdsLeft } = await world(t, url)
      const [one]: WalletId[] = ['budget:b1:1']
      assert.ok(one)
      await wallet(one, 230n)
      for (let i = 0; i < 230; i++) await hold(`r${i}`, one, 1n)
      for (const left of [130, 30, 0]) {
        await ledger.renew([], now)
        assert.deepEqual([await leased(one), (await holdsLeft()).length], [[BigInt(left)], left])
      }
      await hold('later', one, 0n)
      await ledger.renew([], now)
      assert.equal((await holdsLeft()).length, 1, 'none are left: a minute passes')
    })
  })
}

describe('what somebody has locked in Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('is left for another time by who tidies, who waits for nobody', async (t) => {
    const { pass, ...made } = await world(t, postgresUrl)
    const { db, now, ledger, lease, wallet, hold, leased, leasesLeft, holdsLeft } = made
    const [locked, free, other]: WalletId[] = ['budget:b1:1', 'budget:b2:1', 'budget:b3:1']
    assert.ok(locked && free && other)
    for (const id of [locked, free, other]) {
      await wallet(id, 10n)
      await hold('ended', id, 10n)
    }
    await saveLeases(db, [lease('locked', 1), lease('free', 1)])
    await db.transaction().execute(async (trx) => {
      await trx.selectFrom('leases').select('id').where('id', '=', 'locked').forUpdate().execute()
      await trx.selectFrom('wallets').select('id').where('id', '=', locked).forUpdate().execute()
      const rows = trx.selectFrom('budget_holds').select('wallet').where('wallet', '=', other)
      await rows.forUpdate().execute()
      await ledger.renew([], now)
      assert.deepEqual(await leasesLeft(), ['locked'])
      assert.deepEqual(await leased(locked, free, other), [10n, 0n, 10n])
    })
    pass(MINUTE_MS)
    await ledger.renew([], now)
    assert.deepEqual([await leasesLeft(), await holdsLeft()], [[], []])
    assert.deepEqual(await leased(locked, free, other), [0n, 0n, 0n])
  })
})
