import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Database, openDatabase } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/postgres-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { booksOf, paidGateways, pay, shutDown } from './paid-gateways.ts'
import { assertUndisturbed, steadyLoad } from './steady-load.ts'

const FAILING_MS = 3000

const CONFIG = {
  accounts: [
    { id: 'poison', balance: '1000' },
    { id: 'steady', balance: '1000' },
  ],
  keys: [
    { id: 'p', account: 'poison' },
    { id: 's', account: 'steady' },
  ],
  price: { perRequest: '0.01' },
}

/** Rows of one account that the database refuses: the table, the condition on the new row. */
const REFUSED: Readonly<Record<string, readonly [table: string, when: string, on: string]>> = {
  charges: ['charges', "new.account = 'poison'", 'insert'],
  entries: ['calls', "new.account = 'poison'", 'insert'],
  wallets: ['wallets', "new.id = 'account:poison' and new.spent > old.spent", 'update'],
}

async function refuse(db: Database, isSqlite: boolean, row: keyof typeof REFUSED): Promise<void> {
  const [table, when, on] = REFUSED[row] ?? []
  if (isSqlite) {
    await sql
      .raw(`create trigger refusing before ${on} on ${table} when ${when}
      begin select raise(abort, 'refused'); end`)
      .execute(db)
    return
  }
  await sql
    .raw(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'refused'; end $$`)
    .execute(db)
  await sql
    .raw(`create trigger refusing before ${on} on ${table} for each row when (${when})
    execute function refuse()`)
    .execute(db)
}

describe('charges of one account that cannot be written', { timeout: 240_000 }, () => {
  for (const { name, url, skip } of BACKENDS) {
    for (const row of Object.keys(REFUSED)) {
      it(`hold up its own calls only: ${row}, ${name}`, { skip }, async (t) => {
        const heldUp = watchHeldUp(t)
        const databaseUrl = await url(t)
        const world = await paidGateways(t, databaseUrl, CONFIG, (res) => chatAnswer(res))
        const gateway = await world.start()
        const alone = await steadyLoad(
          gateway,
          { key: 's' },
          steadyLoad(gateway, { key: 'p' }, sleep(1500), 50),
        )

        const db = await openDatabase(databaseUrl, { logger: recordingLogger() })
        t.after(() => db.destroy())
        const isSqlite = name === 'SQLite'
        await refuse(db, isSqlite, row)
        const failing = sleep(FAILING_MS)
        const [beside] = await Promise.all([
          steadyLoad(gateway, { key: 's' }, failing),
          steadyLoad(gateway, { key: 'p' }, failing, 100),
        ])
        t.diagnostic(`${row}, ${name}: alone ${JSON.stringify(alone)}, beside ${JSON.stringify(beside)}`)
        assertUndisturbed(beside, alone, heldUp())
        const { logged } = gateway
        assert.ok(logged.some(({ msg }) => msg.endsWith('it is set aside')) || row !== 'charges')
        await sql.raw(`drop trigger refusing${isSqlite ? '' : ` on ${REFUSED[row]?.[0]}`}`).execute(db)
        assert.equal((await pay(gateway, { text: 'after', key: 's' }))?.status, 200)
        await shutDown([gateway])
        assert.deepEqual((await booksOf(databaseUrl)).violations, [])
      })
    }
  }
})
