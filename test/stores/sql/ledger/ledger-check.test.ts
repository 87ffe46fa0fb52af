import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type KyselyPlugin, type RawBuilder, sql } from 'kysely'
import { openDatabase, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { pruneMinutes, pruneUsage } from '../../../../lib/stores/sql/usage/sql-usage-counter.ts'
import { charge, draw, leaseOf, voidOf } from '../../../contracts/ledger-money.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

/** Damage that somebody might do to the rows, and the violations that the check then reports. */
const DAMAGES: [what: string, damage: RawBuilder<unknown>, violations: string[]][] = [
  [
    'funds that nobody deposited',
    sql`update wallets set funds = funds + 5 where id = 'account:acme'`,
    ['wallet "account:acme": funds is 0.000001005, its deposits and adjustments come to 0.000001'],
  ],
  [
    'a deposit that is gone',
    sql`delete from deposits where reference = 'more'`,
    ['wallet "account:acme": funds is 0.000001, its deposits and adjustments come to 0.0000009'],
  ],
  [
    'a figure spent that is wrong',
    sql`update wallets set spent = spent - 1 where id = 'key:k'`,
    [
      'wallet "key:k": spent is 0.000000029, its charges less voids come to 0.00000003',
      'wallet "key:k": spent is 0.000000029, its usage comes to 0.00000003',
    ],
  ],
  [
    'a charge that is gone',
    sql`delete from charges where request_id = 'req_1'`,
    [
      'wallet "account:acme": spent is 0.00000003, its charges less voids come to 0',
      'wallet "key:k": spent is 0.00000003, its charges less voids come to 0',
    ],
  ],
  [
    'a lease that is gone',
    sql`delete from leases`,
    ['wallet "account:acme": leased is 0.00000006, its leases and holds come to 0'],
  ],
  [
    'a lease below nothing',
    sql`update leases set held = -1`,
    [
      'lease "L" holds -0.000000001 of wallet "account:acme"',
      'wallet "account:acme": leased is 0.00000006, its leases and holds come to -0.000000001',
    ],
  ],
  [
    'a lease that has ended and holds something',
    sql`update leases set ended = 'swept', ended_at = 1`,
    ['lease "L", which has ended, holds 0.00000006 of wallet "account:acme"'],
  ],
  [
    'a hold that is not counted',
    sql`insert into holds (request_id, account, key, amount) values ('req_8', 'acme', null, 7)`,
    ['wallet "account:acme": leased is 0.00000006, its leases and holds come to 0.000000067'],
  ],
  [
    'a hold of what is charged already, and one of nothing',
    sql`insert into holds (request_id, account, key, amount) values ('req_1', 'acme', 'k', 0), ('req_7', 'acme', null, 0)`,
    ['hold "req_1", which is charged, is of 0', 'hold "req_7" is of 0'],
  ],
  [
    'a void of another amount',
    sql`update voids set amount = 4 where request_id = 'req_2'`,
    [
      'void of "req_2" undoes 0.000000004, and its charge is 0.000000009',
      'wallet "account:acme": spent is 0.00000003, its charges less voids come to 0.000000035',
    ],
  ],
  [
    'a void of another account',
    sql`update voids set account = 'globex' where request_id = 'req_2'`,
    [
      'void of "req_2" undoes 0.000000009, and its charge is 0.000000009',
      'wallet "account:acme": spent is 0.00000003, its charges less voids come to 0.000000039',
      'wallet "account:globex" has entries but no row',
    ],
  ],
  [
    'a void of a charge that is not there',
    sql`insert into voids (request_id, account, key, amount, at) values ('req_9', 'acme', null, 5, 1)`,
    [
      'void of "req_9" undoes 0.000000005, and there is no charge',
      'wallet "account:acme": spent is 0.00000003, its charges less voids come to 0.000000025',
    ],
  ],
  [
    'a wallet that is gone',
    sql`delete from wallets where id = 'key:k'`,
    ['wallet "key:k" has entries but no row'],
  ],
  [
    'usage by hours that is of another key',
    sql`update usage set key = 'other' where grain = 0 and key = 'k'`,
    [
      'usage of account "acme" and key "k" comes to 0, by days to 0.00000003',
      'usage of account "acme" and key "k" comes to 0, by users, tags and hours to 0.00000003',
      'usage of account "acme" and key "k" comes to 0, by users, tags and days to 0.00000003',
      'usage of account "acme" and key "k" comes to 0, by users, tags and months to 0.00000003',
      'usage of account "acme" and key "k" comes to 0, by minutes to 0.00000003',
      'usage of account "acme" and key "other" comes to 0.00000003, by days to 0',
      'usage of account "acme" and key "other" comes to 0.00000003, by users, tags and hours to 0',
      'usage of account "acme" and key "other" comes to 0.00000003, by users, tags and days to 0',
      'usage of account "acme" and key "other" comes to 0.00000003, by users, tags and months to 0',
      'usage of account "acme" and key "other" comes to 0.00000003, by minutes to 0',
      'wallet "key:k": spent is 0.00000003, its usage comes to 0',
      'wallet "key:other" has entries but no row',
    ],
  ],
  [
    'usage by days that is gone',
    sql`delete from usage where grain = 2`,
    ['usage of account "acme" and key "k" comes to 0.00000003, by days to 0'],
  ],
  [
    'usage of a user that is wrong by the least amount',
    sql`update usage set charged = charged + 1 where grain = 1 and key = 'k'`,
    ['usage of account "acme" and key "k" comes to 0.00000003, by users, tags and hours to 0.000000031'],
  ],
  [
    'usage of a user by days that is wrong',
    sql`update usage set charged = 0 where grain = 3 and key = 'k'`,
    ['usage of account "acme" and key "k" comes to 0.00000003, by users, tags and days to 0'],
  ],
  [
    'usage of a user by months that is wrong',
    sql`update usage set charged = 0 where grain = 4 and key = 'k'`,
    ['usage of account "acme" and key "k" comes to 0.00000003, by users, tags and months to 0'],
  ],
  [
    'usage of a minute that is gone',
    sql`delete from usage where grain = 5`,
    ['usage of account "acme" and key "k" comes to 0.00000003, by minutes to 0'],
  ],
]

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a check of the ledger in ${name}`, { skip }, () => {
    for (const [what, damage, violations] of DAMAGES) {
      it(`reports ${what}`, async () => {
        const { db } = await emptied()
        const ledger = new SqlLedger(db)
        await ledger.deposit('acme', 900n, 'first', 1)
        await ledger.deposit('acme', 100n, 'more', 1)
        const lease = await leaseOf(ledger, 'account:acme', 80n)
        const undone = charge('acme', 9n, { requestId: 'req_2' })
        await ledger.settle([
          charge('acme', 30n, {
            requestId: 'req_1',
            key: 'k',
            draws: [draw(lease, 'account:acme', 20n)],
          }),
          undone,
          voidOf(undone),
          voidOf(charge('acme', 1n, { requestId: 'req_3' })),
        ])
        await db.updateTable('leases').set({ id: 'L' }).execute()
        assert.deepEqual((await ledger.check()).violations, [])
        await damage.execute(db)
        assert.deepEqual((await ledger.check()).violations, violations)
      })
    }

    it('does not miss what was pruned of users and tags, and nothing else', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      const [january, march] = [Date.UTC(2026, 0, 31), Date.UTC(2026, 2, 20)]
      await ledger.settle([charge('acme', 5n, { at: january }), charge('acme', 7n, { at: march })])
      assert.equal(await pruneUsage(db, march + 1), true)
      assert.equal(await pruneUsage(db, march + 1), false)
      assert.deepEqual((await ledger.check()).violations, [])
      await sql`delete from usage where grain = 1`.execute(db)
      assert.deepEqual((await ledger.check()).violations, [
        'usage of account "acme" comes to 0.000000007, by users, tags and hours to 0',
      ])
    })

    it('does not miss what was pruned of minutes, and nothing else', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      const hour = Date.UTC(2026, 2, 20, 7)
      await ledger.settle([charge('acme', 5n, { at: hour - 1 }), charge('acme', 7n, { at: hour })])
      assert.equal(await pruneMinutes(db, hour + 1), true)
      assert.equal(await pruneMinutes(db, hour + 1), false)
      assert.deepEqual((await ledger.check()).violations, [])
      await sql`delete from usage where grain = 5`.execute(db)
      assert.deepEqual((await ledger.check()).violations, [
        'usage of account "acme" comes to 0.000000007, by minutes to 0',
      ])
    })

    it('goes through more accounts with usage than it reads at a time', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      await ledger.settle(Array.from({ length: 501 }, (_, i) => charge(`acme-${i}`, 5n)))
      assert.deepEqual((await ledger.check()).violations, [])
      await sql`delete from usage where account = 'acme-500'`.execute(db)
      assert.deepEqual((await ledger.check()).violations, [
        'wallet "account:acme-500": spent is 0.000000005, its usage comes to 0',
      ])
    })

    it('adds up a bounded number of rows of usage a statement, however many an account has', async () => {
      const { db } = await emptied()
      const asked: string[] = []
      const overheard: KyselyPlugin = {
        transformQuery({ node, queryId }) {
          asked.push(db.getExecutor().compileQuery(node, queryId).sql)
          return node
        },
        transformResult: async ({ result }) => result,
      }
      const ledger = new SqlLedger(db, { checks: db.withPlugin(overheard) })
      const most = 2n ** 63n - 25_000n
      await ledger.settle([charge('acme', most, { key: 'k' }), charge('globex', most)])
      const many = (grain: RawBuilder<unknown>) => sql`insert into usage
        with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 2501)
        select 'acme', ${grain}, 1440 * n, 'd' || n, 'k', '', '', '', '{}', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 from numbers`
      for (const grain of [0, 1, 2, 3, 4, 5]) await many(sql.lit(grain)).execute(db)
      await sql`update wallets set spent = spent + 2501 where id in ('account:acme', 'key:k')`.execute(db)
      await sql`update charges set amount = amount + 2501 where account = 'acme'`.execute(db)
      assert.deepEqual((await ledger.check()).violations, [])
      const unbounded = asked.filter((text) => /from usage\b/.test(text) && !/\blimit\b/.test(text))
      assert.deepEqual(unbounded, [])
      await sql`update usage set charged = charged + 1 where grain = 3 and digest = 'd2501'`.execute(db)
      const { violations } = await ledger.check()
      assert.match(
        violations.join(),
        /^usage of account "acme" and key "k" comes to \S+, by users, tags and days to \S+$/,
      )
    })

    it('may read through a handle of its own, which sees what was written', async (t) => {
      const database = await url(t)
      const db = await open(t, database)
      const checks = await openDatabase(database, { readOnly: true })
      t.after(() => checks.destroy())
      const ledger = new SqlLedger(db, { checks })
      await ledger.settle([charge('acme', 5n)])
      assert.equal((await ledger.check()).spent, 5n)
    })

    it('goes through more of every kind of row than it reads at a time', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      const many = sql`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 4001)`
      const each = sql`from numbers`
      for (const rows of [
        sql`insert into deposits (account, reference, amount, at) ${many} select 'a' || n, 'opening', 50, 1 ${each}`,
        sql`insert into charges (request_id, account, key, amount, at, usage) ${many} select 'r' || n, 'a' || n, null, 9, 1, '{}' ${each}`,
        sql`insert into voids (request_id, account, key, amount, at) ${many} select 'r' || n, 'a' || n, null, 9, 1 ${each}`,
        sql`insert into leases (id, wallet, owner, held, seq, last_moved, beats, renewed_at)
          ${many} select 'l' || n, 'account:a' || n, 'p', 7, 1, 7, 1, 1 ${each}`,
        sql`insert into holds (request_id, account, key, amount) ${many} select 'h' || n, 'a' || n, null, 5 ${each}`,
        sql`insert into wallets (id, limited, funds, spent, leased, overrun)
          ${many} select 'account:a' || n, 1, 50, 0, 12, 0 ${each}`,
      ])
        await rows.execute(db)
      assert.deepEqual(await ledger.check(), {
        violations: [],
        accounts: 4001,
        charges: 4001,
        deposited: 4001n * 50n,
        spent: 0n,
        leased: 4001n * 12n,
      })
    })

    it('goes through more charges than it reads at a time', async () => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      await ledger.settle([charge('acme', 0n, { requestId: 'req_0', key: 'k' })])
      await sql`
        insert into charges (request_id, account, key, amount, at, basis, usage)
        with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 50001)
        select 'more_' || n, 'acme', 'k', 3, 1, null, '{}' from numbers`.execute(db)
      await sql`update usage set charged = 150003`.execute(db)
      await sql`update wallets set spent = 150003`.execute(db)
      const { violations, charges, spent } = await ledger.check()
      assert.deepEqual([violations, charges, spent], [[], 50_002, 150_003n])
    })
  })
}
