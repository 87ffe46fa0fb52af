import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Database, openDatabase } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { booksOf, paidGateways, pay, shutDown } from './paid-gateways.ts'
import { assertUndisturbed, steadyLoad } from './steady-load.ts'

const FAILING_MS = 3000

/** Rows of one account that the database refuses: the table, the condition on the new row. */
const REFUSED: Readonly<
  Record<string, (account: string) => readonly [table: string, when: string, on: string]>
> = {
  charges: (account) => ['charges', `new.account = '${account}'`, 'insert'],
  entries: (account) => ['calls', `new.account = '${account}'`, 'insert'],
  wallets: (account) => ['wallets', `new.id = 'account:${account}' and new.spent > old.spent`, 'update'],
}

/** One account for each of them, whose key has its name, and one beside them. */
const ACCOUNTS = [...Object.keys(REFUSED), 'steady']

const CONFIG = {
  accounts: ACCOUNTS.map((id) => ({ id, balance: '1000' })),
  keys: ACCOUNTS.map((id) => ({ id, account: id })),
  price: { perRequest: '0.01' },
}

/** Has the database refuse rows of an account; returns what ends that. */
async function refuse(db: Database, isSqlite: boolean, row: string): Promise<() => Promise<unknown>> {
  const [table, when, on] = REFUSED[row]?.(row) ?? []
  if (isSqlite)
    await sql
      .raw(`create trigger refusing before ${on} on ${table} when ${when}
      begin select raise(abort, 'refused'); end`)
      .execute(db)
  else {
    await sql
      .raw(`create or replace function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'refused'; end $$`)
      .execute(db)
    await sql
      .raw(`create trigger refusing before ${on} on ${table} for each row when (${when})
      execute function refuse()`)
      .execute(db)
  }
  return () => sql.raw(`drop trigger refusing${isSqlite ? '' : ` on ${table}`}`).execute(db)
}

describe('charges of one account that cannot be written', { timeout: 240_000 }, () => {
  for (const { name, url, skip } of BACKENDS) {
    it(`hold up its own calls only: ${name}`, { skip }, async (t) => {
      const heldUp = watchHeldUp(t)
      const databaseUrl = await url(t)
      const world = await paidGateways(t, databaseUrl, CONFIG, (res) => chatAnswer(res))
      const gateway = await world.start()
      const alone = await steadyLoad(
        gateway,
        { key: 'steady' },
        steadyLoad(gateway, { key: 'charges' }, sleep(1500), 50),
      )
      const db = await openDatabase(databaseUrl, { logger: recordingLogger() })
      t.after(() => db.destroy())
      for (const row of Object.keys(REFUSED)) {
        const accept = await refuse(db, name === 'SQLite', row)
        const failing = sleep(FAILING_MS)
        const [beside] = await Promise.all([
          steadyLoad(gateway, { key: 'steady' }, failing),
          steadyLoad(gateway, { key: row }, failing, 100),
        ])
        t.diagnostic(`${row}, ${name}: alone ${JSON.stringify(alone)}, beside ${JSON.stringify(beside)}`)
        assertUndisturbed(beside, alone, heldUp())
        const { logged } = gateway
        assert.ok(logged.some(({ msg }) => msg.endsWith('it is set aside')) || row !== 'charges')
        await accept()
        assert.equal((await pay(gateway, { text: 'after', key: 'steady' }))?.status, 200)
      }
      await shutDown([gateway])
      assert.deepEqual((await booksOf(databaseUrl)).violations, [])
    })
  }
})
