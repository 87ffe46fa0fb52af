import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { NOT_KNOWN, shareOfCharge } from '../../../../lib/core/usage/index.ts'
import type { DepositResult } from '../../../../lib/ledger/index.ts'
import { labelRows, WRITE_LABELS } from '../../../../lib/stores/sql/calls/call-labels.ts'
import {
  type Database,
  openDatabase,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
  SqlTaskStore,
} from '../../../../lib/stores/sql/index.ts'
import { addUsage, UsageTally } from '../../../../lib/stores/sql/usage/usage-tally.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, figures } from '../../../contracts/ledger-money.ts'
import { created, intentOf } from '../../../contracts/task-samples.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const NOW = Date.now()
const claimOf = (id: string, owner = 'o') => ({
  ...{ id, owner, fingerprint: 'f' },
  now: NOW,
  leaseUntil: NOW + 60_000,
})

async function somebodyWaits(db: Database): Promise<void> {
  const waiting = sql<{ n: bigint }>`select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  while ((await waiting.execute(db)).rows[0]?.n !== 1n) await sleep(5)
}

describe('processes that write the same rows of a Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('wait for none of the records that they renew', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await open(t, url)]
    const store = new SqlIdempotencyStore(db)
    // In the table the last comes first.
    for (const id of ['c', 'b', 'a']) await store.claim(claimOf(id))
    await db.transaction().execute(async (trx) => {
      assert.equal(await store.completeWithin(trx, { id: 'a', owner: 'o' }, NOW + 60_000), true)
      const claims = ['c', 'b', 'a'].map((id) => ({ id, owner: 'o' }))
      const renewed = await new SqlIdempotencyStore(other).renew(claims, NOW + 120_000)
      assert.deepEqual(renewed, [true, true, undefined])
      assert.equal(await store.completeWithin(trx, { id: 'c', owner: 'o' }, NOW + 60_000), true)
    })
    const claims = ['a', 'b'].map((id) => ({ id, owner: 'o' }))
    assert.deepEqual(await new SqlIdempotencyStore(other).renew(claims, NOW + 120_000), [false, true])
  })

  it('lock the wallet of a deposit first', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await open(t, url)]
    const ledger = new SqlLedger(other)
    await ledger.deposit('acme', 5n, 'opening', 1)
    const depositing = Promise.withResolvers<DepositResult>()
    await db.transaction().execute(async (trx) => {
      await trx.selectFrom('wallets').select('id').where('id', '=', 'account:acme').forUpdate().execute()
      depositing.resolve(ledger.deposit('acme', 3n, 'again', 1))
      await somebodyWaits(db)
      const again = { account: 'acme', reference: 'again', amount: 3n, at: 1n, reason: null }
      await trx.insertInto('deposits').values(again).execute()
      await trx.updateTable('wallets').set({ funds: 8n }).where('id', '=', 'account:acme').execute()
    })
    assert.equal(await depositing.promise, 'known')
    assert.deepEqual(await figures(ledger, 'acme'), [8n, 0n, 0n, 0n])
  })

  it('add to usage of an hour in one order, whichever of its calls came first', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await open(t, url)]
    const charges = (models: readonly string[]) =>
      models.map((model) => charge('acme', 1n, { at: NOW, usage: { ...NOT_KNOWN, model } }))
    const add = (models: readonly string[]) =>
      addUsage(other, new UsageTally(charges(models).map(shareOfCharge)))
    await add(['one', 'two'])
    const rows = db.selectFrom('usage').select('model').where('grain', '=', 0).orderBy('digest')
    const [first = '', last = ''] = (await rows.execute()).map(({ model }) => model)
    for (const models of [
      [first, last],
      [last, first],
    ]) {
      const adding = await db.transaction().execute(async (trx) => {
        await sql`select from usage where grain = 0 and model = ${last} for update`.execute(trx)
        const adding = add(models)
        await somebodyWaits(db)
        assert.deepEqual(await rows.forUpdate().skipLocked().execute(), [])
        return { adding }
      })
      await adding.adding
    }
  })

  it('log the call of a video before what it is searched by', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await open(t, url)]
    const store = new SqlTaskStore(other)
    const intent = intentOf({ account: 'acme', key: 'k' }, { hold: 0n })
    assert.equal((await store.intend(intent)).kind, 'held')
    const entry = entryAt(NOW, { id: intent.requestId })
    await new SqlCallStore(db).append([entry])
    const [label] = await db.deleteFrom('call_labels').returningAll().execute()
    assert.ok(label)
    const { creating } = await db.transaction().execute(async (trx) => {
      await trx.selectFrom('calls').select('id').where('id', '=', entry.id).forUpdate().execute()
      const creating = store.created(intent.id, { ...created(), entry }, NOW)
      await somebodyWaits(db)
      await trx.insertInto('call_labels').values(label).execute()
      return { creating }
    })
    assert.equal((await creating)?.state, 'queued')
  })

  it('prune each what the others do not', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await openDatabase(url, { statementTimeoutMs: 2000 })]
    t.after(() => other.destroy())
    const claims = new SqlIdempotencyStore(db)
    for (const id of ['a', 'b', 'c']) await claims.claim(claimOf(id))
    const calls = new SqlCallStore(db)
    await calls.append([entryAt(NOW), entryAt(NOW + 1), entryAt(NOW + 2)])
    await db.transaction().execute(async (trx) => {
      assert.equal(await new SqlIdempotencyStore(trx).prune(NOW + 60_000, 2), 2)
      assert.equal(await new SqlCallStore(trx).prune(NOW + 3, 2), 2)
      assert.equal(await new SqlIdempotencyStore(other).prune(NOW + 60_000, 10), 1)
      assert.equal(await new SqlCallStore(other).prune(NOW + 3, 10), 1)
    })
    assert.deepEqual((await calls.list({ limit: 10 })).entries, [])
  })

  it('label the same calls, though each labels some that the other does not', async (t) => {
    const url = await postgresUrl()
    const [db, other] = [await open(t, url), await open(t, url)]
    for (let round = 0; round < 12; round++) {
      const entries = Array.from({ length: 400 }, (_, i) =>
        entryAt(NOW + i, { user: `user ${i % 7}`, tags: { team: 'search' } }),
      )
      // One that waits in a circle is ended.
      await Promise.all([
        WRITE_LABELS.run(db, entries.slice(0, 350).flatMap(labelRows)),
        WRITE_LABELS.run(other, entries.slice(37).flatMap(labelRows)),
      ])
    }
  })

  it('take over a record that has run out, one of them', async (t) => {
    const url = await postgresUrl()
    const stores = await Promise.all(
      Array.from({ length: 4 }, async () => new SqlIdempotencyStore(await open(t, url))),
    )
    for (let round = 0; round < 20; round++) {
      const id = `r${round}`
      await stores[0]!.claim(claimOf(id, 'first'))
      const later = { now: NOW + 60_000, leaseUntil: NOW + 120_000 }
      const standing = await Promise.all(
        Array.from({ length: 20 }, (_, i) => stores[i % 4]!.claim({ ...claimOf(id, `o${i}`), ...later })),
      )
      const winners = standing.flatMap((record, i) => (record === undefined ? [`o${i}`] : []))
      assert.equal(winners.length, 1)
      for (const record of standing) if (record) assert.equal(record.owner, winners[0])
    }
  })
})
