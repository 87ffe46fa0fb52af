import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { SqlIdempotencyStore } from '../../../lib/stores/sql/index.ts'
import { databaseUrl, open } from '../../stores/sql/support/temporary-database.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { keyedGateway } from './keyed-gateway.ts'

const claimOf = (owner: string) => ({ id: 'record', owner })
const request = (owner: string, now: number) => ({
  ...claimOf(owner),
  fingerprint: 'f',
  now,
  leaseUntil: now + 60_000,
})

describe('a record in the transaction of its charge', () => {
  it('is completed when that commits, and not when it is rolled back', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const store = new SqlIdempotencyStore(db)
    assert.equal(await store.claim(request('a', 0)), undefined)
    const charge = (fails: boolean) =>
      db.transaction().execute(async (trx) => {
        assert.equal(await store.completeWithin(trx, claimOf('a'), 100_000), true)
        await trx.insertInto('seeds').values({ kind: 'account', id: 'charge', seeded_at: 1n }).execute()
        if (fails) throw new Error('the charge fails')
      })
    await assert.rejects(charge(true), /the charge fails/)
    assert.equal((await store.claim(request('b', 0)))?.state, 'running')
    await charge(false)
    assert.equal((await store.claim(request('b', 0)))?.state, 'completed')
  })

  it('reports to the ledger that its claim was lost, so that nothing is charged', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const store = new SqlIdempotencyStore(db)
    await store.claim(request('a', 0))
    assert.equal(await store.claim(request('b', 60_000)), undefined)
    const charging = db.transaction().execute(async (trx) => {
      await trx.insertInto('seeds').values({ kind: 'account', id: 'charge', seeded_at: 1n }).execute()
      if (!(await store.completeWithin(trx, claimOf('a'), 100_000))) throw new Error('claim lost')
    })
    await assert.rejects(charging, /claim lost/)
    assert.deepEqual(await db.selectFrom('seeds').selectAll().execute(), [])
    assert.equal((await store.claim(request('c', 60_001)))?.owner, 'b')
  })

  it('is the ledger’s to complete where the app says so, before the last byte goes out', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const store = new SqlIdempotencyStore(db)
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    let committed = 0
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { store, settledBy: 'ledger' },
      further: (req, _res, next) => {
        const call = callOf(req)
        call.onSettle(async () => {
          const { claim } = call.idempotency!
          await db.transaction().execute((trx) => store.completeWithin(trx, claim!, Date.now() + 1000))
          claim!.state = 'completed'
          committed++
        })
        next()
      },
    })
    const first = await gateway.exchange('k')
    assert.equal(first.status, 200)
    assert.equal(committed, 1)
    const second = await gateway.exchange('k')
    assert.equal(second.envelope().error.details?.original_request_id, first.requestId)
    assert.equal(upstream.requests.length, 1)
  })

  it('is not logged while the ledger has not answered: a commit that was not seen may yet be undone', async (t) => {
    const db = await open(t, await databaseUrl(t))
    let renewals = 0
    class WatchedStore extends SqlIdempotencyStore {
      override async renew(
        ...given: Parameters<SqlIdempotencyStore['renew']>
      ): Promise<(boolean | undefined)[]> {
        const held = await super.renew(...given)
        renewals++
        return held
      }
    }
    const store = new WatchedStore(db)
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const ledger = Promise.withResolvers<void>()
    const committed = Promise.withResolvers<void>()
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { store, settledBy: 'ledger', claimLeaseMs: 2000 },
      further: (req, _res, next) => {
        const call = callOf(req)
        call.onSettle(async () => {
          const { claim } = call.idempotency!
          claim!.state = 'settling'
          await db.transaction().execute((trx) => store.completeWithin(trx, claim!, Date.now() + 60_000))
          committed.resolve()
          await ledger.promise
          claim!.state = 'completed'
        })
        next()
      },
    })
    const first = gateway.exchange('k')
    await committed.promise
    assert.equal((await gateway.exchange('k')).errorCode, 'idempotency_key_in_use')
    const seen = renewals
    await until(() => renewals >= seen + 2, 'renewals of what is completed')
    assert.equal((await gateway.exchange('k')).errorCode, 'idempotency_key_in_use')
    ledger.resolve()
    const { status, requestId } = await first
    assert.equal(status, 200)
    const replayed = await gateway.exchange('k')
    assert.equal(replayed.errorCode, 'idempotency_key_replayed')
    assert.equal(replayed.envelope().error.details?.original_request_id, requestId)
  })
})
