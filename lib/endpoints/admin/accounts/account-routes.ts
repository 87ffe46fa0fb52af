import type { Request, Response, Router } from 'express'
import type { z } from 'zod'
import { callOf } from '../../../core/call/index.ts'
import { formatAmount } from '../../../core/catalog/index.ts'
import { changeOrigin } from '../../../core/change-log/index.ts'
import {
  idIn,
  isoTime,
  jsonBody,
  listPage,
  newRouter,
  orNotFound,
  ownQuery,
  readBody,
  readQuery,
} from '../../../core/json-api/index.ts'
import { describeFunds } from '../../../ledger/wallet.ts'
import { type Authority, refuseRuled } from '../authority/drift-routes.ts'
import { type LedgerView, type WalletFigures, walletsOf } from '../ledger/ledger-view.ts'
import { pageQuery } from '../page-query.ts'
import { describeRegions, type RegionsView } from '../regions/region-routes.ts'
import { accountChangeSchema, adjustmentSchema, depositSchema, newAccountSchema } from './account-schemas.ts'
import type { Account, AccountSettings, AccountStore } from './account-store.ts'

export interface AdminAccountRoutesOptions {
  readonly accounts: AccountStore
  readonly ledger: LedgerView
  readonly authority?: Authority | undefined
  readonly regions?: RegionsView | undefined
  /** Returns what the settings of an account name that does not exist. */
  readonly warningsOf: (account: Account) => readonly string[]
  readonly actor: (req: Request) => string
}

/** Returns the routes of `/accounts`: accounts with their balances, deposits and adjustments. */
export function adminAccountRoutes({
  accounts,
  ledger,
  authority,
  regions,
  warningsOf,
  actor,
}: AdminAccountRoutesOptions): Router {
  const router = newRouter()
  router.get('/accounts', ownQuery, listAccounts)
  router.post('/accounts', jsonBody, createAccount)
  router.get('/accounts/:id', showAccount)
  router.patch('/accounts/:id', jsonBody, changeAccount)
  router.post('/accounts/:id/deposits', jsonBody, (req, res) =>
    deposit(req, res, readBody(req, depositSchema)),
  )
  router.post('/accounts/:id/adjustments', jsonBody, (req, res) =>
    deposit(req, res, readBody(req, adjustmentSchema)),
  )
  return router

  async function listAccounts(req: Request, res: Response): Promise<void> {
    const { limit, cursor } = readQuery(req, pageQuery)
    const found = await accounts.list(limit + 1, cursor)
    const wallets = await walletsOf(ledger, 'account', found)
    res.json(listPage(found, limit, (account) => described(account, wallets.get(account.id))))
  }

  async function createAccount(req: Request, res: Response): Promise<void> {
    const { id, ...rest } = readBody(req, newAccountSchema)
    const settings = revised(DEFAULT_SETTINGS, rest)
    const account = await accounts.create(id, settings, changeOrigin(req, actor))
    if (!account) {
      const message = 'An account with this id exists. Choose another id.'
      throw callOf(req).refuse('conflict', { message })
    }
    await send(res.status(201), account)
  }

  async function showAccount(req: Request, res: Response): Promise<void> {
    await send(res, orNotFound(req, await accounts.find(idIn(req))))
  }

  async function changeAccount(req: Request, res: Response): Promise<void> {
    const change = readBody(req, accountChangeSchema)
    await refuseRuled(req, authority, 'account')
    const origin = changeOrigin(req, actor)
    const account = await accounts.change(idIn(req), (settings) => revised(settings, change), origin)
    await send(res, orNotFound(req, account))
  }

  /** Makes a deposit, or an adjustment if there is a reason. */
  async function deposit(
    req: Request,
    res: Response,
    { amount, reference, reason = null }: { amount: bigint; reference: string; reason?: string | null },
  ): Promise<void> {
    const account = idIn(req)
    const outcome = await accounts.deposit(account, amount, reference, changeOrigin(req, actor), reason)
    switch (outcome.kind) {
      case 'no_account':
        throw callOf(req).refuse('not_found')
      case 'conflict':
        throw callOf(req).refuse('conflict', {
          message: 'This reference was used before, for another amount or kind. Use a new reference.',
        })
      case 'too_much':
        throw callOf(req).refuse('invalid_request', {
          param: 'amount',
          message:
            'amount: the deposits of the account would exceed 9223372036 in all. Use a smaller amount.',
        })
      case 'deposited':
      case 'known':
        res.status(outcome.kind === 'deposited' ? 201 : 200).json({
          object: reason === null ? 'deposit' : 'adjustment',
          account,
          amount: formatAmount(amount),
          reference,
          ...(reason !== null && { reason: outcome.reason }),
          created_at: isoTime(outcome.at),
        })
        return
      default:
        throw new TypeError('the store of accounts did not say what became of a deposit')
    }
  }

  async function send(res: Response, account: Account): Promise<void> {
    const wallets = await walletsOf(ledger, 'account', [account])
    const elsewhere = regions && (await describeRegions(regions, account.id))
    res.json({ ...described(account, wallets.get(account.id)), ...elsewhere })
  }

  function described(account: Account, wallet: WalletFigures | undefined) {
    return { ...describeAccount(account, wallet), warnings: warningsOf(account) }
  }
}

const DEFAULT_SETTINGS: AccountSettings = {
  name: null,
  prepaid: true,
  limits: { rpm: null, tpm: null, concurrency: null },
  regions: null,
  lineRegions: null,
  status: 'active',
}

/** Returns settings in which the members of a body, also those of its limits, are replaced. */
function revised(settings: AccountSettings, change: z.output<typeof accountChangeSchema>): AccountSettings {
  const { limits = {}, name = settings.name, prepaid = settings.prepaid, status = settings.status } = change
  const { rpm = settings.limits.rpm, tpm = settings.limits.tpm } = limits
  const { concurrency = settings.limits.concurrency } = limits
  const { regions = settings.regions, line_regions: lineRegions = settings.lineRegions } = change
  return { name, prepaid, limits: { rpm, tpm, concurrency }, regions, lineRegions, status }
}

function describeAccount(account: Account, wallet: WalletFigures | undefined) {
  return {
    id: account.id,
    object: 'account',
    name: account.name,
    status: account.status,
    prepaid: account.prepaid,
    ...describeFunds(wallet),
    limits: account.limits,
    regions: account.regions,
    line_regions: account.lineRegions,
    created_at: isoTime(account.createdAt),
  }
}
