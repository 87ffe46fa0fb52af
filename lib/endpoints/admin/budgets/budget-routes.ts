import type { Request, Response, Router } from 'express'
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
import { type Budget, budgetWallet } from '../../../ledger/budgets/budget.ts'
import { periodAt } from '../../../ledger/budgets/budget-period.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { LedgerView } from '../ledger/ledger-view.ts'
import { newId } from '../new-id.ts'
import { accountPageQuery } from '../page-query.ts'
import { describeSettings } from './budget-change.ts'
import { budgetChangeSchema, newBudgetSchema } from './budget-schemas.ts'
import { type BudgetStore, MAX_BUDGETS } from './budget-store.ts'

export interface BudgetRoutesOptions {
  readonly budgets: BudgetStore
  readonly ledger: LedgerView
  readonly actor: (req: Request) => string
}

export function budgetRoutes({ budgets, ledger, actor }: BudgetRoutesOptions): Router {
  const router = newRouter()
  router.get('/budgets', ownQuery, listBudgets)
  router.post('/budgets', jsonBody, createBudget)
  router.get('/budgets/:id', showBudget)
  router.patch('/budgets/:id', jsonBody, changeBudget)
  router.delete('/budgets/:id', deleteBudget)
  return router

  async function listBudgets(req: Request, res: Response): Promise<void> {
    const { limit, cursor, account } = readQuery(req, accountPageQuery)
    const found = await budgets.list({ account, after: cursor, limit: limit + 1 })
    const described = await describeAll(found)
    res.json(listPage(described, limit, (budget) => budget))
  }

  async function createBudget(req: Request, res: Response): Promise<void> {
    const body = readBody(req, newBudgetSchema)
    const origin = changeOrigin(req, actor)
    const budget: Budget = {
      ...body,
      id: newId('budget'),
      createdAt: origin.at,
    }
    switch (await budgets.create(budget, origin)) {
      case 'created':
        await send(res.status(201), budget)
        return
      case 'no_account':
        throw callOf(req).refuse('invalid_request', {
          param: 'scope.account',
          message: 'scope.account: there is no account with this id. Create it first.',
        })
      case 'no_key':
        throw callOf(req).refuse('invalid_request', {
          param: 'scope.key',
          message: 'scope.key: the account has no key with this id.',
        })
      case 'too_many':
        throw callOf(req).refuse('conflict', {
          message: `The account has ${MAX_BUDGETS} budgets. Delete one first.`,
        })
      default:
        throw new TypeError('the store of budgets did not say whether it made a budget')
    }
  }

  async function showBudget(req: Request, res: Response): Promise<void> {
    await send(res, orNotFound(req, await budgets.find(idIn(req))))
  }

  async function changeBudget(req: Request, res: Response): Promise<void> {
    const change = readBody(req, budgetChangeSchema)
    const revise = ({ amount, hard, soft }: Budget | Pick<Budget, 'amount' | 'hard' | 'soft'>) => ({
      amount: change.amount ?? amount,
      hard: change.hard ?? hard,
      soft: change.soft ?? soft,
    })
    await send(res, orNotFound(req, await budgets.change(idIn(req), revise, changeOrigin(req, actor))))
  }

  async function deleteBudget(req: Request, res: Response): Promise<void> {
    const id = idIn(req)
    if (!(await budgets.delete(id, changeOrigin(req, actor)))) throw callOf(req).refuse('not_found')
    res.json({ id, object: 'budget', deleted: true })
  }

  async function send(res: Response, budget: Budget): Promise<void> {
    res.json((await describeAll([budget]))[0])
  }

  async function describeAll(found: readonly Budget[]) {
    if (found.length === 0) return []
    const at = Date.now()
    const running = found.map((budget) => {
      const bounds = periodAt(budget.period, budget.timezone, at)
      return { budget, bounds, wallet: budgetWallet(budget.id, bounds.start) }
    })
    const wallets = await ledger.wallets(running.map(({ wallet }) => wallet))
    const spentBy = new Map(wallets.map(({ wallet, spent }) => [wallet as WalletId, spent]))
    return running.map(({ budget, bounds, wallet }) => describe(budget, bounds, spentBy.get(wallet) ?? 0n))
  }
}

function describe(budget: Budget, { start, end }: { start: number; end: number }, spent: bigint) {
  const ends = Number.isFinite(end)
  return {
    id: budget.id,
    object: 'budget',
    ...describeSettings(budget),
    spent: formatAmount(spent),
    left: formatAmount(budget.amount - spent),
    period_start: ends ? isoTime(start) : null,
    resets_at: ends ? isoTime(end) : null,
    created_at: isoTime(budget.createdAt),
  }
}
