import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { accountWallet } from '../../../lib/ledger/wallet.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

/** An app with a guard for each name, in this order, whose account it charges. The same name is the same guard. */
async function guarded(t: TestContext, ...names: string[]) {
  const ledger = new MemoryLedger({ unknownAccounts: 'postpaid' })
  const logger = recordingLogger()
  const pool = new LeasePool({ ledger, logger })
  let runs = 0
  const made = new Map(
    names.map((name) => [name, billingGuard({ pool, account: () => name, reserve: () => '1' })]),
  )
  const app = await serveApp((app) => {
    for (const name of names) {
      app.use(made.get(name) as ReturnType<typeof billingGuard>)
      app.use((req, _res, next) => {
        callOf(req).charge('0.25')
        next()
      })
    }
    app.get('/', (_req, res) => {
      runs++
      res.json({})
    })
    app.use(errorEnvelope({ logger }))
  })
  t.after(() => app.close().then(() => pool.close()))
  const { status } = await fetch(app.url)
  const wallets = await ledger.wallets([...made.keys()].map(accountWallet))
  return { status, runs, spent: wallets.map((wallet) => wallet.spent), logged: logger.lines }
}

it('a guard that is mounted twice holds money once, and what was reported behind each adds up', async (t) => {
  const { status, runs, spent } = await guarded(t, 'acme', 'acme')
  assert.deepEqual([status, runs, spent], [200, 1, [500_000_000n]])
})

it('a second guard is reported to the operator, and no call is charged: one of two charges would be lost', async (t) => {
  const { status, runs, spent, logged } = await guarded(t, 'platform', 'acme')
  assert.deepEqual([status, runs, spent], [500, 0, []])
  const [told] = logged.map(({ fields }) => fields.err as Error)
  assert.match(String(told?.message), /another billingGuard .* mount one of them/)
})
