import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { type BillingGuardOptions, billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

/** A pool that takes note of what is reserved of whom. */
class NotedPool extends LeasePool {
  readonly asked: unknown[] = []

  override reserve(...given: Parameters<LeasePool['reserve']>): ReturnType<LeasePool['reserve']> {
    this.asked.push(given[0])
    return super.reserve(...given)
  }
}

/** The payers that a hold was asked for; the callers of half of the requests have a key. */
async function payers(t: TestContext, options: Partial<BillingGuardOptions>) {
  const ledger = new MemoryLedger({ unknownAccounts: 'postpaid' })
  const pool = new NotedPool({ ledger, logger: recordingLogger() })
  const app = await serveApp((app) => {
    app.use((req, _res, next) => {
      const principal = { accountId: 'acme', keyId: 'k1', lineRegions: undefined, mayUseModel: () => true }
      if (req.path === '/known') Object.assign(callOf(req), { principal })
      next()
    })
    app.use(billingGuard({ pool, reserve: () => 5n, ...options }), (_req, res) => void res.json({}))
  })
  t.after(() => app.close())
  const statuses: number[] = []
  for (const path of ['/known', '/unknown']) statuses.push((await fetch(app.url + path)).status)
  await pool.close()
  return { asked: pool.asked, statuses }
}

const held = (account: string, key: string | null) => ({ account, key, amount: 5n })

it('the money of a call is that of its account and its key', async (t) => {
  const { asked, statuses } = await payers(t, {})
  assert.deepEqual([asked, statuses], [[held('acme', 'k1')], [200, 500]], 'nobody else is charged')
})

it('it is that of whom the app names, who need no key', async (t) => {
  const named = await payers(t, { account: () => 'globex' })
  assert.deepEqual(
    [named.asked, named.statuses],
    [
      [held('globex', 'k1'), held('globex', null)],
      [200, 200],
    ],
  )
  const both = await payers(t, { account: () => 'globex', key: () => 'k2' })
  assert.deepEqual(both.asked, [held('globex', 'k2'), held('globex', 'k2')])
  const none = await payers(t, { account: () => 'globex', key: () => null })
  assert.deepEqual(none.asked, [held('globex', null), held('globex', null)])
})
