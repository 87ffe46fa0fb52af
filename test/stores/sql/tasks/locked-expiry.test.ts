import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import {
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
  SqlTaskStore,
} from '../../../../lib/stores/sql/index.ts'
import { assertSound } from '../../../contracts/ledger-money.ts'
import { HOUR, leasedOf, NOON, payer, type TasksUnderTest, taken } from '../../../contracts/task-samples.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

describe('a video task that has become too old', { skip: WITHOUT_POSTGRES }, () => {
  for (const locked of [1, 2])
    it(`is given up although ${locked} other accounts with older ones have locked rows`, async (t) => {
      const db = await open(t, await postgresUrl())
      const tasks = new SqlTaskStore(db)
      const tested: TasksUnderTest = {
        stores: [tasks],
        ledger: new SqlLedger(db),
        claims: new SqlIdempotencyStore(db),
        calls: new SqlCallStore(db),
        close: async () => {},
      }
      const busy = await Promise.all(Array.from({ length: locked }, () => payer(tested, 1000n)))
      const other = await payer(tested, 1000n)
      for (const who of busy) for (let i = 0; i < 3; i++) await taken(tasks, who, { createdAt: NOON + i })
      const { id } = await taken(tasks, other, { createdAt: NOON + 100 })
      const expire = () => tasks.expire(NOON + 200, NOON + 48 * HOUR, NOON + 72 * HOUR, 3)
      await db.transaction().execute(async (trx) => {
        const ids = busy.map(({ account }) => `account:${account}`)
        await sql`select 1 from wallets where id = any(${ids}::text[]) for update`.execute(trx)
        assert.deepEqual(
          (await expire()).map((task) => task.id),
          [id],
        )
        await assert.rejects(expire, 'who asks hears that the others wait')
      })
      assert.deepEqual(await leasedOf(tested, other), [0n, 0n])
      while ((await expire()).length > 0);
      for (const who of busy) assert.deepEqual(await leasedOf(tested, who), [0n, 0n])
      await assertSound(tested.ledger)
    })
})
