import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Request, Response } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { type BillingGuardOptions, billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type AppServer, recordingLogger, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

/** The invalid answers that an app in JavaScript may give. */
const UNUSABLE: Record<string, object> = {
  'an amount that is a number': { reserve: () => 5 },
  'no amount at all': { reserve: () => undefined },
  'an amount below 0': { reserve: () => -5n },
  'an account that is null': { account: () => null },
  'an account without a name': { account: () => '' },
  'no word about the key': { key: () => undefined },
}

describe('a guard whose app returns an invalid result', () => {
  const logger = recordingLogger()
  const ledger = new MemoryLedger({ accounts: [{ id: 'acme', balance: '10' }] })
  const pool = new LeasePool({ ledger, logger })
  const usable: BillingGuardOptions = {
    pool,
    account: () => 'acme',
    key: () => null,
    reserve: () => '1',
  }
  let handled = 0
  let app: AppServer
  const cleanUp = cleaningUp()
  cleanUp.after(() => pool.close())
  before(async () => {
    app = await serveApp((app) => {
      for (const [i, unusable] of Object.values(UNUSABLE).entries())
        app.get(`/${i}`, billingGuard({ ...usable, ...unusable }))
      app.get('/fine', billingGuard(usable))
      app.use((req: Request, res: Response) => {
        handled++
        callOf(req).charge('0.5')
        res.json({})
      }, errorEnvelope({ logger }))
    })
    cleanUp.after(() => app.close())
  })

  for (const [i, what] of Object.keys(UNUSABLE).entries())
    it(`fails that call alone, and serves the next: ${what}`, async () => {
      handled = 0
      const failed = await fetch(`${app.url}/${i}`)
      assert.equal(failed.status, 500)
      assert.equal(handled, 0)
      assert.equal((await fetch(`${app.url}/fine`)).status, 200)
      assert.equal(handled, 1)
    })

  it('has charged only what was served', async () => {
    await pool.close()
    const { spent, leased, charges } = await ledger.check()
    const served = Object.keys(UNUSABLE).length
    assert.deepEqual([spent, leased, charges], [500_000_000n * BigInt(served), 0n, served])
  })
})
