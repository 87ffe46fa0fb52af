import { z } from 'zod'
import { callOf, userOf } from '../../core/call/index.ts'
import { formatAmount, isTagName, isTagValue } from '../../core/catalog/index.ts'
import {
  type AnswerOf,
  accountPageQuery,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  orNotFound,
  time,
} from '../../core/json-api/index.ts'
import { BUDGET_PERIODS, type Budget, budgetWallet } from '../../ledger/budgets/budget.ts'
import { isTimezone, periodAt } from '../../ledger/budgets/budget-period.ts'
import type { WalletId } from '../../ledger/index.ts'
import type { LedgerView } from '../accounts/ledger.ts'
import {
  deletedOf,
  deletion,
  idMember,
  newId,
  positiveAmountMember,
  type ResourceParts,
} from '../resource.ts'
import { type BudgetStore, describeSettings, MAX_BUDGETS } from './budget-store.ts'

const MAX_SOFT = 10

const tagError = 'must be a name and a value, such as "team=search"'

/** No call has a user with another name: such a budget would never count. */
const user = z.string().refine((name) => userOf(name) === name, {
  error:
    'must be as the call log has it: 1 to 128 bytes without control characters, spaces at the ends, or the session that Claude Code adds',
})

const newScope = z.strictObject({
  account: idMember,
  key: idMember.nullable().default(null),
  user: user.nullable().default(null),
  tag: z.string({ error: tagError }).refine(isTag, { error: tagError }).nullable().default(null),
})

const share = z.number().gt(0).max(1).multipleOf(0.000001)

const terms = {
  amount: positiveAmountMember,
  hard: z.boolean(),
  soft: z
    .array(share)
    .max(MAX_SOFT)
    .refine((shares) => new Set(shares).size === shares.length, { error: 'must have no share twice' })
    .transform((shares) => shares.toSorted((one, other) => one - other)),
}

const period = z.enum(BUDGET_PERIODS)

const newBudget = z.strictObject({
  scope: newScope,
  amount: terms.amount,
  period,
  timezone: z
    .string()
    .max(100)
    .refine(isTimezone, { error: 'must be the name of a time zone, such as "Europe/Berlin"' })
    .default('UTC'),
  hard: terms.hard.default(true),
  soft: terms.soft.default([]),
})

const budgetPatch = z.strictObject(terms).partial()

const budget = z.strictObject({
  id: z.string(),
  object: z.literal('budget'),
  scope: z.strictObject({
    account: z.string(),
    key: z.string().nullable(),
    user: z.string().nullable(),
    tag: z.string().nullable(),
  }),
  amount: z.string(),
  period,
  timezone: z.string(),
  hard: z.boolean(),
  soft: z.array(z.number()),
  spent: z.string(),
  left: z.string(),
  period_start: time.nullable(),
  resets_at: time.nullable(),
  created_at: time,
})
export type BudgetAnswer = AnswerOf<typeof budget>

interface BudgetParts extends ResourceParts {
  readonly budgets: BudgetStore
  readonly ledger: LedgerView
}

const endpoint = endpointFor<BudgetParts>()

export const BUDGET_ENDPOINTS = [
  endpoint({
    id: 'listBudgets',
    method: 'get',
    path: '/budgets',
    role: 'viewer',
    summary: 'Budgets, by their ids',
    query: accountPageQuery,
    answers: answersWith('BudgetList', listOf(budget)),
    async handle({ query: { limit, cursor, account } }, { budgets, ledger }) {
      const found = await budgets.list({ account, after: cursor, limit: limit + 1 })
      return listPage(await describeAll(found, ledger), limit, (described) => described)
    },
  }),
  endpoint({
    id: 'createBudget',
    method: 'post',
    path: '/budgets',
    role: 'finance',
    summary: 'Creates a budget; it counts from now on',
    body: newBudget,
    answers: answersWith('Budget', budget, 201),
    async handle({ req, body }, { budgets, ledger, origin }) {
      const change = origin(req)
      const made: Budget = { ...body, id: newId('budget'), createdAt: change.at }
      switch (await budgets.create(made, change)) {
        case 'created':
          return describe(made, ledger)
        case 'no_account':
          throw callOf(req).refuse('invalid_request', {
            param: 'scope.account',
            message: 'scope.account: there is no account with this id. Create it first.',
          })
        case 'no_key':
          throw callOf(req).refuse('invalid_request', {
            param: 'scope.key',
            message: 'scope.key: the account has no key with this id. Name one of its keys, or leave it out.',
          })
        case 'too_many':
          throw callOf(req).refuse('conflict', {
            message: `The account has ${MAX_BUDGETS} budgets. Delete one first.`,
          })
        default:
          throw new TypeError('the store of budgets did not say whether it made a budget')
      }
    },
  }),
  endpoint({
    id: 'getBudget',
    method: 'get',
    path: '/budgets/{id}',
    role: 'viewer',
    summary: 'One budget, with what is spent and left in the running period',
    answers: answersWith('Budget', budget),
    async handle({ req, id }, { budgets, ledger }) {
      return describe(orNotFound(req, await budgets.find(id)), ledger)
    },
  }),
  endpoint({
    id: 'changeBudget',
    method: 'patch',
    path: '/budgets/{id}',
    role: 'finance',
    summary: 'Changes the amount of a budget, whether it refuses, and its alerts',
    body: budgetPatch,
    answers: answersWith('Budget', budget),
    async handle({ req, id, body }, { budgets, ledger, origin }) {
      const changed = await budgets.change(
        id,
        ({ amount, hard, soft }) => ({
          amount: body.amount ?? amount,
          hard: body.hard ?? hard,
          soft: body.soft ?? soft,
        }),
        origin(req),
      )
      return describe(orNotFound(req, changed), ledger)
    },
  }),
  endpoint({
    id: 'deleteBudget',
    method: 'delete',
    path: '/budgets/{id}',
    role: 'finance',
    summary: 'Deletes a budget',
    answers: answersWith('DeletedBudget', deletedOf('budget')),
    async handle({ req, id }, { budgets, origin }) {
      orNotFound(req, await budgets.delete(id, origin(req)))
      return deletion('budget', id)
    },
  }),
]

function isTag(text: string): boolean {
  const at = text.indexOf('=')
  return at > 0 && isTagName(text.slice(0, at)) && isTagValue(text.slice(at + 1))
}

async function describe(budget: Budget, ledger: LedgerView): Promise<BudgetAnswer> {
  const [described] = await describeAll([budget], ledger)
  return described as BudgetAnswer
}

async function describeAll(found: readonly Budget[], ledger: LedgerView): Promise<BudgetAnswer[]> {
  if (found.length === 0) return []
  const at = Date.now()
  const running = found.map((budget) => {
    const bounds = periodAt(budget.period, budget.timezone, at)
    return { budget, bounds, wallet: budgetWallet(budget.id, bounds.start) }
  })
  const wallets = await ledger.wallets(running.map(({ wallet }) => wallet))
  const spentBy = new Map(wallets.map(({ wallet, spent }) => [wallet as WalletId, spent]))
  return running.map(({ budget, bounds: { start, end }, wallet }) => {
    const spent = spentBy.get(wallet) ?? 0n
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
  })
}
