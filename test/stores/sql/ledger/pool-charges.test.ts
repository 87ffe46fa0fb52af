import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { MAX_FINE_ROWS, NOT_KNOWN } from '../../../../lib/core/usage/index.ts'
import { LeasePool } from '../../../../lib/ledger/index.ts'
import { Reservation } from '../../../../lib/ledger/pool/reservation.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { charge, fresh, prepaid } from '../../../contracts/ledger-money.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a charge of a pool in ${name}`, { skip }, () => {
    it('is stored with its terms where its account has too many users to tell apart', async (t) => {
      const { db } = await emptied()
      const ledger = new SqlLedger(db)
      const account = await prepaid(ledger, 1_000_000n)
      const at = Date.now()
      const usageOf = (user: string) => ({ ...NOT_KNOWN, user, requests: 1 })
      const many = Array.from({ length: MAX_FINE_ROWS }, () =>
        charge(account, 1n, { requestId: newRequestId(at), at, usage: usageOf(fresh('user')) }),
      )
      for (let i = 0; i < many.length; i += 500) await ledger.settle(many.slice(i, i + 500))
      const logger = recordingLogger()
      const pool = new LeasePool({ ledger, logger, confirmMs: 30_000 })
      t.after(() => pool.close(0))
      const held = await pool.reserve({ account, key: null, amount: 10n })
      assert.ok(held instanceof Reservation)
      const requestId = newRequestId(at)
      const terms = { basis: () => '{"items":[]}', claim: null, entry: null }
      const outcome = await held.settle({ requestId, amount: 5n, at, usage: usageOf('one-more'), ...terms })
      assert.deepEqual([outcome, logger.lines], ['confirmed', []])
      const stored = await db
        .selectFrom('charges')
        .select(['basis', 'usage'])
        .where('request_id', '=', requestId)
        .executeTakeFirst()
      assert.equal(stored?.basis, '{"items":[]}')
      assert.doesNotMatch(stored?.usage ?? '', /one-more/)
      assert.deepEqual((await ledger.check()).violations, [])
    })
  })
}
