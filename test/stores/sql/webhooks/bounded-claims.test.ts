import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { newWebhookSecret } from '../../../../lib/management/webhooks/webhook-request.ts'
import {
  SqlIdempotencyStore,
  SqlLedger,
  SqlTaskStore,
  SqlWebhookOutbox,
  SqlWebhookStore,
} from '../../../../lib/stores/sql/index.ts'
import { originOf } from '../../../contracts/account-store.ts'
import { HOUR, NOON, payer, type TasksUnderTest, taken } from '../../../contracts/task-samples.ts'
import { eventOf, NOW } from '../../../contracts/webhook-samples.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

/**
 * Fills a table row by row, and has Postgres count it when there is one row. It takes the table for as small from then on, and
 * could run the subquery of a statement once for each row.
 */
async function filledBehind(
  t: TestContext,
  table: string,
  add: (db: Awaited<ReturnType<typeof open>>) => Promise<unknown>,
) {
  const db = await open(t, await postgresUrl())
  await add(db)
  await sql`analyze ${sql.table(table)}`.execute(db)
  for (let i = 0; i < 4; i++) await add(db)
  return db
}

describe('a Postgres that takes a table for small', { skip: WITHOUT_POSTGRES }, () => {
  it('lets deliveries of a webhook be claimed, and pruned, by no more than are asked for', async (t) => {
    let n = 0
    const db = await filledBehind(t, 'webhook_deliveries', async (at) => {
      const [store, outbox] = [new SqlWebhookStore(at), new SqlWebhookOutbox(at)]
      const webhook = {
        id: 'wh',
        url: 'https://a.example/',
        format: 'standard',
        events: null,
        description: null,
      }
      if (n === 0) await store.create({ ...webhook, secret: newWebhookSecret() } as never, originOf())
      await outbox.record([eventOf(n, `line:${n++}`)])
      await outbox.createDeliveries(NOW)
    })
    const outbox = new SqlWebhookOutbox(db)
    const claim = { webhook: 'wh', owner: 'one', now: NOW, until: NOW + 30_000 }
    assert.equal((await outbox.claim({ ...claim, limit: 1 })).length, 1)
    assert.equal((await outbox.claim({ ...claim, limit: 2 })).length, 2)
    assert.equal(await outbox.prune(NOW + HOUR, 2), 2)
  })

  it('lets tasks be claimed by no more than are asked for', async (t) => {
    let who: Awaited<ReturnType<typeof payer>> | undefined
    const db = await filledBehind(t, 'video_tasks', async (at) => {
      who ??= await payer({ ledger: new SqlLedger(at) } as unknown as TasksUnderTest, 1000n)
      await taken(new SqlTaskStore(at), who)
    })
    const claim = { owner: 'p', now: NOON + HOUR, until: NOON + 2 * HOUR }
    assert.equal((await new SqlTaskStore(db).claimDue({ ...claim, limit: 2 })).length, 2)
  })

  it('lets idempotency records be pruned by no more than are asked for', async (t) => {
    let n = 0
    const db = await filledBehind(t, 'idempotency', (at) =>
      new SqlIdempotencyStore(at).claim({
        ...{ id: `key ${n++}`, owner: 'o', fingerprint: 'f' },
        ...{ now: NOW, leaseUntil: NOW + 1000 },
      }),
    )
    const { count } = await db
      .selectFrom('idempotency')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    assert.equal(Number(count), 5)
    assert.equal(await new SqlIdempotencyStore(db).prune(Date.now() + 1000 * HOUR, 2), 2)
  })
})
