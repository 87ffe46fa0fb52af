import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, LeasePool } from '../../../lib/ledger/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { SqlIdempotencyStore, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { databaseUrl, open } from '../../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { keyedGateway } from '../idempotency/keyed-gateway.ts'

/** A ledger that commits nothing until a test lets it. */
class HeldLedger extends SqlLedger {
  readonly go = Promise.withResolvers<void>()
  override async settle(...given: Parameters<SqlLedger['settle']>): ReturnType<SqlLedger['settle']> {
    await this.go.promise
    return super.settle(...given)
  }
}

describe('an answer that was kept back because its charge was not confirmed', () => {
  it('is not in the call log either, as it is not paid for, and its key runs again', async (t) => {
    const db = await open(t, await databaseUrl(t))
    const ledger = new HeldLedger(db)
    await ledger.setLimit(accountWallet('acme'), { limited: false })
    const pool = new LeasePool({ ledger, logger: recordingLogger(), confirmMs: 2000 })
    const upstream = await startUpstream()
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { store: new SqlIdempotencyStore(db), settledBy: 'ledger', storeTimeoutMs: 10_000 },
      further: billingGuard({ pool, key: () => null, reserve: () => '1' }),
    })
    t.after(async () => {
      ledger.go.resolve()
      await pool.close()
      await upstream.close()
    })
    const kept = await gateway.exchange('k')
    assert.equal(kept.errorCode, 'billing_unavailable')
    assert.doesNotMatch(kept.text, /Hello/)
    const entry = await gateway.entry(kept.requestId)
    assert.deepEqual([entry.status, entry.outcome, entry.error_code], [503, 'failed', 'billing_unavailable'])
    assert.equal(entry.billing?.charged, null)
    assert.equal(entry.response_body, null)
    ledger.go.resolve()
    await until(() => pool.stats.queued === 0, 'the void')
    const again = await gateway.exchange('k')
    assert.equal(again.status, 200)
    assert.match((await gateway.entry(again.requestId)).response_body ?? '', /Hello/)
    assert.equal(upstream.requests.length, 2)
  })
})
