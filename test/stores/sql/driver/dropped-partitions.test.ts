import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { SqlCallStore } from '../../../../lib/stores/sql/index.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { untilAsync } from '../../../support/until.ts'
import { openPartitioned } from '../support/postgres-database.ts'
import { MONTH_MS, NOW, retentionOf } from '../support/retention-world.ts'

it('a partition that is being read is dropped afterwards, and others wait a tenth of a second at a time', {
  skip: WITHOUT_POSTGRES,
}, async (t) => {
  const db = await openPartitioned(t)
  t.mock.timers.enable({ apis: ['Date'], now: NOW })
  const sequences = async () => {
    const { rows } = await sql<{ tries: bigint; patience: bigint }>`
      select tries.last_value as tries, patience.last_value as patience from tries, patience`.execute(db)
    return rows[0]
  }
  for (const name of ['tries', 'patience']) await sql`create sequence ${sql.table(name)}`.execute(db)
  // The value of a sequence stays, whatever becomes of the transaction.
  await sql`create function note_drop() returns event_trigger language plpgsql as $$
    begin
      perform nextval('tries');
      perform setval('patience', (extract(epoch from current_setting('lock_timeout')::interval) * 1000)::bigint);
    end $$`.execute(db)
  await sql`create event trigger noted on ddl_command_start when tag in ('DROP TABLE')
    execute function note_drop()`.execute(db)
  const retention = retentionOf(t, db, { calls: 3 * MONTH_MS })
  const { run } = await db.transaction().execute(async (trx) => {
    await sql`select count(*) from calls`.execute(trx)
    const run = retention.run()
    await untilAsync(async () => Number((await sequences())?.tries) > 1, 'it is tried again')
    await new SqlCallStore(db).list({ limit: 1 })
    return { run }
  })
  const { dropped } = await run
  assert.ok(
    dropped.some((part) => /^calls_\d+$/.test(part)),
    dropped.join(),
  )
  assert.equal((await sequences())?.patience, 100n)
})
