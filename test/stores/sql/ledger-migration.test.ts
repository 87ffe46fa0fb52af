import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { SqlLedger, seedAccountsAndKeys } from '../../../lib/stores/sql/index.ts'
import { olderDatabase } from './older-database.ts'
import { BACKENDS } from './postgres-database.ts'
import { open } from './temporary-database.ts'

/** A database as it was before there was a ledger, with two accounts and two keys. */
async function writeOlder(url: string): Promise<void> {
  const db = await olderDatabase(url, '0002-idempotency')
  await sql`
    insert into accounts (id, balance, created_at)
    values ('acme', 25000000001, 7), ('globex', null, 8), ('debtor', -5, 9)`.execute(db)
  await sql`
    insert into keys (id, account, secret_hash, enabled, quota, created_at)
    values ('k1', 'acme', 'x', 1, 5000000000, 7), ('k2', 'globex', 'y', 1, null, 8)`.execute(db)
  await sql`insert into seeds (kind, id, seeded_at) values ('account', 'acme', 7)`.execute(db)
  await db.destroy()
}

for (const { name, emptyUrl: url, skip } of BACKENDS) {
  describe(`a database of before the ledger in ${name}`, { skip }, () => {
    it('gets a wallet for each account and key, and a deposit for each balance', async (t) => {
      const database = await url(t)
      await writeOlder(database)
      const db = await open(t, database)
      const wallets = await db.selectFrom('wallets').selectAll().orderBy('id').execute()
      const nothing = { spent: 0n, leased: 0n, overrun: 0n }
      assert.deepEqual(wallets, [
        { id: 'account:acme', limited: 1, funds: 25_000_000_001n, ...nothing },
        { id: 'account:debtor', limited: 1, funds: -5n, ...nothing },
        { id: 'account:globex', limited: 0, funds: 0n, ...nothing },
        { id: 'key:k1', limited: 1, funds: 5_000_000_000n, ...nothing },
        { id: 'key:k2', limited: 0, funds: 0n, ...nothing },
      ])
      const deposits = await db.selectFrom('deposits').selectAll().orderBy('account').execute()
      assert.deepEqual(deposits, [
        { account: 'acme', reference: 'opening', amount: 25_000_000_001n, at: 7n, reason: null },
        { account: 'debtor', reference: 'opening', amount: -5n, at: 9n, reason: null },
      ])
      assert.deepEqual((await new SqlLedger(db).check()).violations, [])
    })

    it('keeps balance and quota nowhere else', async (t) => {
      const database = await url(t)
      await writeOlder(database)
      const db = await open(t, database)
      const [account] = await db.selectFrom('accounts').selectAll().where('id', '=', 'acme').execute()
      const [key] = await db.selectFrom('keys').selectAll().where('id', '=', 'k1').execute()
      assert.ok(account && key)
      assert.ok(!('balance' in account) && !('quota' in key))
      const config = { accounts: [{ id: 'acme', balance: '99' }], keys: [] }
      assert.deepEqual(await seedAccountsAndKeys(db, config), { accounts: 0, keys: 0 })
      assert.equal((await new SqlLedger(db).wallets(['account:acme']))[0]?.funds, 25_000_000_001n)
    })
  })
}
