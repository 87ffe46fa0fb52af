import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { WebhookWatch } from '../../../lib/management/webhooks/index.ts'
import {
  type Database,
  SqlAccountStore,
  SqlKeyStore,
  SqlWatchSource,
  SqlWebhookOutbox,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-store.ts'
import { emptiedDatabase } from '../../stores/sql/support/emptied-database.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { untilAsync } from '../../support/until.ts'

const DAY_MS = 86_400_000
const NANOS = 1_000_000_000n
const quiet = { info: () => {}, warn: () => {}, error: () => {} }
const SEED = {
  accounts: [{ id: 'acme', balance: '100' }, { id: 'globex', balance: '100' }, { id: 'postpaid' }],
  keys: [
    {
      id: 'soon',
      account: 'acme',
      secret: 'sk-1',
      expiresAt: new Date(Date.now() + 6 * DAY_MS).toISOString(),
    },
    {
      id: 'later',
      account: 'globex',
      secret: 'sk-2',
      expiresAt: new Date(Date.now() + 9 * DAY_MS).toISOString(),
    },
    { id: 'never', account: 'globex', secret: 'sk-3' },
  ],
}

async function scene(t: TestContext, db: Database) {
  const down = [new Set<string>(), new Set<string>()]
  const clock = { now: Date.now() }
  const rounds = [0, 0]
  const watches = down.map((lines, i) => {
    const watch = new WebhookWatch({
      outbox: new SqlWebhookOutbox(db),
      source: new SqlWatchSource(db),
      lines() {
        rounds[i] = Number(rounds[i]) + 1
        return ['a', 'b'].map((id) => ({ id, down: lines.has(id) }))
      },
      pollMs: 20,
      now: () => clock.now,
      logger: quiet,
    })
    t.after(() => watch.close())
    return watch
  })
  const told = async () => {
    const rows = await db.selectFrom('webhook_events').selectAll().orderBy('at').execute()
    return rows.map(({ type, subject }) => `${type} ${subject}`)
  }
  /** Waits until both have looked at everything again. */
  const looked = async () => {
    const before = [...rounds]
    await untilAsync(async () => rounds.every((n, i) => n >= Number(before[i]) + 2), 'another look')
  }
  return { db, down, clock, watches, told, looked }
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`two processes that watch, over ${name}`, { skip }, () => {
    it('report once a line that both see go down and come up, and no other', async (t) => {
      const { down, told, looked } = await scene(t, (await emptied()).db)
      for (const lines of down) lines.add('a')
      await looked()
      assert.deepEqual(await told(), ['line.down line:a'])
      down[0]?.delete('a')
      await looked()
      down[1]?.delete('a')
      await looked()
      assert.deepEqual(await told(), ['line.down line:a', 'line.up line:a'])
      down[1]?.add('a')
      await looked()
      assert.deepEqual(await told(), ['line.down line:a', 'line.up line:a', 'line.down line:a'])
    })

    it('report a line as up that only a process that has ended saw down', async (t) => {
      const { down, clock, watches, told, looked } = await scene(t, (await emptied()).db)
      down[0]?.add('a')
      await looked()
      await watches[0]?.close()
      clock.now += 50_000
      await untilAsync(async () => (await told()).length === 1)
      clock.now += 50_000
      await untilAsync(async () => (await told()).length === 2, 'up')
      assert.deepEqual(await told(), ['line.down line:a', 'line.up line:a'])
    })

    it('report one outage of the ledger that both have seen, and the next one', async (t) => {
      const { clock, watches, told, looked } = await scene(t, (await emptied()).db)
      const outage = async () => {
        for (const watch of watches) watch.noteLedger(true)
        clock.now += 5000
        for (const watch of watches) watch.noteLedger(false)
        await looked()
      }
      await outage()
      assert.deepEqual(await told(), ['ledger.away ledger'])
      clock.now += 5000
      await outage()
      assert.deepEqual(await told(), ['ledger.away ledger', 'ledger.away ledger'])
    })

    it('report a key seven days before it ends, once, and again if it was prolonged', async (t) => {
      const { db, clock, told, looked } = await scene(t, (await emptied()).db)
      await seedAccountsAndKeys(db, SEED)
      clock.now += 61_000
      await untilAsync(async () => (await told()).length === 1)
      assert.deepEqual(await told(), ['key.expiring key:soon'])
      clock.now += 61_000
      await looked()
      const expiresAt = clock.now + 3 * DAY_MS
      await new SqlKeyStore(db).change('later', (settings) => ({ ...settings, expiresAt }), originOf())
      clock.now += 61_000
      await untilAsync(async () => (await told()).length === 2)
      assert.deepEqual(await told(), ['key.expiring key:soon', 'key.expiring key:later'])
    })

    it('report a balance below a tenth of the last deposit, once until it rises', async (t) => {
      const { db, clock, told, looked } = await scene(t, (await emptied()).db)
      await seedAccountsAndKeys(db, SEED)
      const accounts = new SqlAccountStore(db)
      let charges = 0
      const spend = async (account: string, amount: bigint) => {
        const lease = `lease-${++charges}`
        const wallet = `account:${account}` as const
        await db
          .updateTable('wallets')
          .set(({ eb }) => ({ spent: eb('spent', '+', amount) }))
          .where('id', '=', wallet)
          .execute()
        await db
          .insertInto('leases')
          .values({
            ...{ id: lease, wallet, owner: 'p', held: 0n, seq: 1, last_moved: 0n, beats: 1 },
            ...{ renewed_at: BigInt(clock.now), ended: null, ended_at: null },
          })
          .onConflict((conflict) => conflict.doNothing())
          .execute()
      }
      const looks = async () => {
        clock.now += 11_000
        await looked()
      }
      const low = async () => (await told()).filter((event) => event.startsWith('balance.low'))
      await spend('acme', 80n * NANOS)
      await spend('globex', 80n * NANOS)
      await looks()
      assert.deepEqual(await low(), [])
      await spend('acme', 15n * NANOS)
      await looks()
      await spend('acme', 1n * NANOS)
      await looks()
      await untilAsync(async () => (await low()).length === 1)
      const { data } = await db
        .selectFrom('webhook_events')
        .select('data')
        .where('type', '=', 'balance.low')
        .executeTakeFirstOrThrow()
      assert.deepEqual(JSON.parse(data), { account: 'acme', balance: '5', threshold: '10' })
      await accounts.deposit('acme', 20n * NANOS, 'invoice-2', originOf())
      await looks()
      await looks()
      await spend('acme', 20n * NANOS)
      await looks()
      await spend('acme', 3n * NANOS)
      await looks()
      await untilAsync(async () => (await low()).length === 2)
      assert.deepEqual(new Set(await low()), new Set(['balance.low account:acme']))
    })

    it('report a balance that an adjustment takes below a tenth of the last deposit, which it does not replace', async (t) => {
      const { db, clock, told, looked } = await scene(t, (await emptied()).db)
      await seedAccountsAndKeys(db, { ...SEED, keys: [] })
      const accounts = new SqlAccountStore(db)
      const adjust = async (amount: bigint, reference: string) => {
        const origin = { ...originOf(), requestId: newRequestId(clock.now), at: clock.now }
        await accounts.deposit('acme', amount, reference, origin, 'corrected')
        clock.now += 11_000
        await looked()
      }
      await adjust(1n * NANOS, 'credit')
      assert.deepEqual(await told(), [])
      await adjust(-92n * NANOS, 'refund')
      await untilAsync(async () => (await told()).length === 1)
      assert.deepEqual(await told(), ['balance.low account:acme'])
    })

    it('report many low balances a few at a time, write nothing for those reported, and stop when closed', async (t) => {
      const { db, clock, watches, told, looked } = await scene(t, (await emptied()).db)
      const ids = Array.from({ length: 520 }, (_, n) => `a${n}`)
      await seedAccountsAndKeys(db, { accounts: ids.map((id) => ({ id, balance: '100' })), keys: [] })
      await db
        .updateTable('wallets')
        .set({ spent: 95n * NANOS })
        .execute()
      const lease = { owner: 'p', held: 0n, seq: 1, last_moved: 0n, beats: 1, ended: null, ended_at: null }
      const leases = ids.map((id) => ({
        id,
        wallet: `account:${id}` as const,
        renewed_at: BigInt(clock.now),
        ...lease,
      }))
      await db.insertInto('leases').values(leases).execute()
      clock.now += 11_000
      await untilAsync(async () => (await told()).length === 520, 'all low balances', 60_000)
      assert.equal(new Set(await told()).size, 520)
      const source = new SqlWatchSource(db)
      const changed = async () =>
        (await source.balances(clock.now - 120_000, 999)).map(({ account }) => account)
      assert.deepEqual(await changed(), [])
      // A rise that nobody has seen is found in turn.
      await db.deleteFrom('leases').execute()
      await db
        .updateTable('wallets')
        .set({ spent: 0n })
        .where('id', 'in', ['account:a0', 'account:a99'])
        .execute()
      assert.deepEqual([...(await changed()), ...(await changed())].sort(), ['a0', 'a99'])
      // Each of the two has its own place among those who are low.
      await untilAsync(async () => {
        clock.now += 11_000
        await looked()
        return [...(await changed()), ...(await changed())].length === 0
      }, 'the balances that rose')
      await db
        .updateTable('wallets')
        .set({ spent: 95n * NANOS })
        .execute()
      await db.insertInto('leases').values(leases.slice(0, 1)).execute()
      await Promise.all(watches.map((watch) => watch.close()))
      assert.deepEqual(await changed(), ['a0'])
      assert.equal((await told()).length, 520)
    })
  })
}
