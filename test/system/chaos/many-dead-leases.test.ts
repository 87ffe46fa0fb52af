import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Clock } from '../../../lib/ledger/pool/clock.ts'
import { LeaseSweeper } from '../../../lib/ledger/pool/lease-sweeper.ts'
import { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import { SqlLedger, seedAccountsAndKeys } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const LEASES = 10_000
const ACCOUNTS = 200
/** A tenth of what is promised: other files run beside this one. */
const LEAST_A_SECOND = 100

/** A clock on which waits take no time, and everything else takes its own. */
function hurriedClock(): Clock {
  let skipped = 0
  return {
    now: () => performance.now() + skipped,
    wall: () => Date.now() + skipped,
    limit: (ms) => ms,
    after(ms, run) {
      const soon = setTimeout(() => {
        skipped += ms
        run()
      }, 20)
      return () => clearTimeout(soon)
    },
  }
}

describe('the leases of a process that died with very many of them', { timeout: 240_000 }, () => {
  for (const { name, url, skip } of BACKENDS) {
    it(`are returned by the thousand: ${name}`, { skip }, async (t) => {
      const db = await open(t, await url(t))
      const accounts = Array.from({ length: ACCOUNTS }, (_, i) => ({ id: `a${i}`, balance: '1000' }))
      await seedAccountsAndKeys(db, { accounts, keys: [] }, { logger: recordingLogger() })
      const ledger = new SqlLedger(db)
      for (let at = 0; at < LEASES; at += 1000) {
        const changes = Array.from({ length: 1000 }, (_, i) => ({
          lease: `dead.${at + i}`,
          wallet: `account:a${(at + i) % ACCOUNTS}` as const,
          seq: 1,
          change: { kind: 'take' as const, need: 1000n, want: 1000n },
        }))
        await ledger.change('dead', changes)
      }
      const [clock, logger] = [hurriedClock(), recordingLogger()]
      const health = new LedgerHealth({ clock, logger, times: { stallMs: 500 }, onStoreChange: () => {} })
      const sweeper = new LeaseSweeper({
        ledger,
        owner: 'lone',
        clock,
        logger,
        health,
        kept: () => new Set(),
      })
      t.after(() => sweeper.close())
      await until(() => sweeper.swept > 0, 'the first', 60_000)
      const [startedAt, before] = [performance.now(), sweeper.swept]
      await until(() => sweeper.swept === LEASES, 'all', 120_000)
      const perSecond = ((LEASES - before) / (performance.now() - startedAt)) * 1000
      t.diagnostic(`${name}: ${Math.round(perSecond)} leases a second`)
      assert.ok(perSecond > LEAST_A_SECOND, `${perSecond} a second`)
      const { violations, leased } = await ledger.check()
      assert.deepEqual([violations, leased, await ledger.leases()], [[], 0n, []])
    })
  }
})
