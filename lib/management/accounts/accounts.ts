import type { Request } from 'express'
import { z } from 'zod'
import { accountLimitsOf, callOf } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import {
  type AnswerOf,
  accountLimits,
  amount,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  orNotFound,
  pageQuery,
  time,
} from '../../core/json-api/index.ts'
import { funds } from '../../endpoints/account/account.ts'
import { describeFunds } from '../../ledger/wallet.ts'
import { type Authority, refuseRuled } from '../authority/drift.ts'
import {
  amountMember,
  idMember,
  limitMember,
  names,
  positiveAmountMember,
  type ResourceParts,
  textMember,
  warnings,
} from '../resource.ts'
import { ACCOUNT_STATUSES, type Account, type AccountSettings, type AccountStore } from './account-store.ts'
import { type LedgerView, walletsOf } from './ledger.ts'

const regions = z.array(idMember).nullable()

const settings = {
  name: textMember.nullable(),
  prepaid: z.boolean(),
  limits: z.strictObject({ rpm: limitMember, tpm: limitMember, concurrency: limitMember }).partial(),
  regions,
  line_regions: regions,
}

const newAccount = z.strictObject({
  id: idMember,
  name: settings.name.default(null),
  prepaid: settings.prepaid.default(true),
  limits: settings.limits.prefault({}),
  regions: settings.regions.default(null),
  line_regions: settings.line_regions.default(null),
})

const accountPatch = z.strictObject({ ...settings, status: z.enum(ACCOUNT_STATUSES) }).partial()

const newDeposit = z.strictObject({ amount: positiveAmountMember, reference: textMember })

const newAdjustment = z.strictObject({
  amount: amountMember.refine((nanos) => nanos !== 0n, { error: 'must not be 0' }),
  reference: textMember,
  reason: textMember,
})

const account = z.strictObject({
  id: z.string(),
  object: z.literal('account'),
  name: z.string().nullable(),
  status: z.enum(ACCOUNT_STATUSES),
  prepaid: z.boolean(),
  ...funds,
  limits: accountLimits,
  regions: names,
  line_regions: names,
  warnings,
  created_at: time,
})
export type AccountAnswer = AnswerOf<typeof account>

const deposit = z.strictObject({
  object: z.literal('deposit'),
  account: z.string(),
  amount,
  reference: z.string(),
  created_at: time,
})

const adjustment = deposit.extend({ object: z.literal('adjustment'), reason: z.string() })

interface AccountParts extends ResourceParts {
  readonly accounts: AccountStore
  readonly ledger: LedgerView
  readonly authority?: Authority | undefined
  /** Returns what the settings of an account name that does not exist. */
  readonly warningsOf: (account: Account) => readonly string[]
}

const endpoint = endpointFor<AccountParts>()

/** Accounts with their balances, deposits and adjustments. */
export const ACCOUNT_ENDPOINTS = [
  endpoint({
    id: 'listAccounts',
    method: 'get',
    path: '/accounts',
    role: 'viewer',
    summary: 'Accounts, by their ids',
    query: pageQuery,
    answers: answersWith('AccountList', listOf(account)),
    async handle({ query: { limit, cursor } }, parts) {
      const found = await describeAll(await parts.accounts.list(limit + 1, cursor), parts)
      return listPage(found, limit, (described) => described)
    },
  }),
  endpoint({
    id: 'createAccount',
    method: 'post',
    path: '/accounts',
    role: 'admin',
    summary: 'Creates an account',
    body: newAccount,
    answers: answersWith('Account', account, 201),
    async handle({ req, body: { id, ...rest } }, parts) {
      const created = await parts.accounts.create(id, revised(DEFAULT_SETTINGS, rest), parts.origin(req))
      if (created) return describe(created, parts)
      const message = 'An account with this id exists. Choose another id.'
      throw callOf(req).refuse('conflict', { message })
    },
  }),
  endpoint({
    id: 'getAccount',
    method: 'get',
    path: '/accounts/{id}',
    role: 'viewer',
    summary: 'One account',
    answers: answersWith('Account', account),
    async handle({ req, id }, parts) {
      return describe(orNotFound(req, await parts.accounts.find(id)), parts)
    },
  }),
  endpoint({
    id: 'changeAccount',
    method: 'patch',
    path: '/accounts/{id}',
    role: 'admin',
    summary: 'Changes the settings of an account',
    body: accountPatch,
    answers: answersWith('Account', account),
    async handle({ req, id, body }, parts) {
      await refuseRuled(req, parts.authority, 'account', id)
      const changed = await parts.accounts.change(id, (before) => revised(before, body), parts.origin(req))
      return describe(orNotFound(req, changed), parts)
    },
  }),
  endpoint({
    id: 'deposit',
    method: 'post',
    path: '/accounts/{id}/deposits',
    role: 'finance',
    summary: 'Adds to a balance, once per reference',
    body: newDeposit,
    answers: [
      { status: 200, description: 'The deposit was made before.', schema: ['Deposit', deposit] },
      { status: 201, description: 'The deposit was made now.', schema: ['Deposit', deposit] },
    ],
    async handle({ req, res, id, body }, parts) {
      const { isNew, reason: _, ...made } = await makeDeposit(req, id, { ...body, reason: null }, parts)
      res.status(isNew ? 201 : 200)
      return { object: 'deposit' as const, ...made }
    },
  }),
  endpoint({
    id: 'adjustBalance',
    method: 'post',
    path: '/accounts/{id}/adjustments',
    role: 'finance',
    summary: 'Adds to a balance or takes from it, once per reference',
    body: newAdjustment,
    answers: [
      { status: 200, description: 'It was made before.', schema: ['Adjustment', adjustment] },
      { status: 201, description: 'It was made now.', schema: ['Adjustment', adjustment] },
    ],
    async handle({ req, res, id, body }, parts) {
      const { isNew, reason, ...made } = await makeDeposit(req, id, body, parts)
      res.status(isNew ? 201 : 200)
      return { object: 'adjustment' as const, ...made, reason: reason ?? body.reason }
    },
  }),
]

/** Makes a deposit, or an adjustment if there is a reason. */
async function makeDeposit(
  req: Request,
  account: string,
  { amount, reference, reason }: { amount: bigint; reference: string; reason: string | null },
  { accounts, origin }: AccountParts,
) {
  const outcome = await accounts.deposit(account, amount, reference, origin(req), reason)
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
        message: 'amount: the deposits of the account would exceed 9223372036 in all. Use a smaller amount.',
      })
    case 'deposited':
    case 'known':
      return {
        isNew: outcome.kind === 'deposited',
        account,
        amount: formatAmount(amount),
        reference,
        reason: outcome.reason,
        created_at: isoTime(outcome.at),
      }
    default:
      throw new TypeError('the store of accounts did not return the result of a deposit')
  }
}

const DEFAULT_SETTINGS: AccountSettings = {
  name: null,
  prepaid: true,
  limits: accountLimitsOf(),
  regions: null,
  lineRegions: null,
  status: 'active',
}

/** Returns settings in which the members of a body, also those of its limits, are replaced. */
function revised(settings: AccountSettings, change: z.output<typeof accountPatch>): AccountSettings {
  const { name = settings.name, prepaid = settings.prepaid, status = settings.status } = change
  const { regions = settings.regions, line_regions: lineRegions = settings.lineRegions } = change
  const limits = accountLimitsOf({ ...settings.limits, ...change.limits })
  return { name, prepaid, limits, regions, lineRegions, status }
}

async function describe(account: Account, parts: AccountParts): Promise<AccountAnswer> {
  const [described] = await describeAll([account], parts)
  return described as AccountAnswer
}

async function describeAll(
  accounts: readonly Account[],
  { ledger, warningsOf }: AccountParts,
): Promise<AccountAnswer[]> {
  const wallets = await walletsOf(ledger, 'account', accounts)
  return accounts.map((account) => ({
    id: account.id,
    object: 'account',
    name: account.name,
    status: account.status,
    prepaid: account.prepaid,
    ...describeFunds(wallets.get(account.id)),
    limits: account.limits,
    regions: account.regions,
    line_regions: account.lineRegions,
    created_at: isoTime(account.createdAt),
    warnings: warningsOf(account),
  }))
}
