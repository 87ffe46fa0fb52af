import type { Request, Response, Router } from 'express'
import { formatAmount } from '../../../core/catalog/index.ts'
import { isoTime, listPage, newRouter, ownQuery, readQuery } from '../../../core/json-api/index.ts'
import { pageById } from '../page-by-id.ts'
import { accountPageQuery } from '../page-query.ts'
import { sharedRun } from '../shared-run.ts'
import type { LeaseFigures, LedgerView } from './ledger-view.ts'

/** Returns the routes `/leases`, the open leases of all processes, and `/ledger/check`, which recomputes the ledger. */
export function ledgerRoutes(ledger: LedgerView): Router {
  const check = sharedRun(() => ledger.check())
  const router = newRouter()
  router.get('/leases', ownQuery, listLeases)
  router.get('/ledger/check', checkLedger)
  return router

  async function listLeases(req: Request, res: Response): Promise<void> {
    const { limit, cursor, account } = readQuery(req, accountPageQuery)
    const all = await ledger.leases()
    const found = account === undefined ? all : all.filter(({ wallet }) => wallet === `account:${account}`)
    res.json(listPage(pageById(found, limit + 1, cursor), limit, describeLease))
  }

  async function checkLedger(_req: Request, res: Response): Promise<void> {
    const { violations, accounts, charges, deposited, spent, leased } = await check()
    res.json({
      object: 'ledger_check',
      violations,
      accounts,
      charges,
      deposited: formatAmount(deposited),
      spent: formatAmount(spent),
      leased: formatAmount(leased),
    })
  }
}

function describeLease({ id, wallet, owner, held, renewedAt }: LeaseFigures) {
  return {
    id,
    object: 'lease',
    wallet,
    owner,
    held: formatAmount(held),
    renewed_at: isoTime(renewedAt),
  }
}
