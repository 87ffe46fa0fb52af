import {
  accountChangeSchema,
  adjustmentSchema,
  depositSchema,
  newAccountSchema,
} from '../admin/accounts/account-schemas.ts'
import { pageQuery } from '../admin/page-query.ts'
import * as schemas from './answer-schemas.ts'
import { answersWith, type Endpoint } from './endpoint.ts'

const admin = { tag: 'Admin', auth: 'admin' } as const

/** The operators' endpoints of accounts and their money. */
export const ACCOUNT_ENDPOINTS: readonly Endpoint[] = [
  {
    id: 'listAccounts',
    method: 'get',
    path: '/admin/accounts',
    summary: 'Accounts, by their ids',
    ...admin,
    query: pageQuery,
    answers: answersWith('AccountList', schemas.listOf(schemas.account)),
  },
  {
    id: 'createAccount',
    method: 'post',
    path: '/admin/accounts',
    summary: 'Creates an account',
    ...admin,
    body: newAccountSchema,
    answers: answersWith('Account', schemas.account, 201),
  },
  {
    id: 'getAccount',
    method: 'get',
    path: '/admin/accounts/{id}',
    summary: 'One account',
    ...admin,
    answers: answersWith('Account', schemas.account),
  },
  {
    id: 'changeAccount',
    method: 'patch',
    path: '/admin/accounts/{id}',
    summary: 'Changes the settings of an account',
    ...admin,
    body: accountChangeSchema,
    answers: answersWith('Account', schemas.account),
  },
  {
    id: 'deposit',
    method: 'post',
    path: '/admin/accounts/{id}/deposits',
    summary: 'Adds to a balance, once per reference',
    ...admin,
    body: depositSchema,
    answers: [
      { status: 200, description: 'The deposit was made before.', schema: ['Deposit', schemas.deposit] },
      { status: 201, description: 'The deposit was made now.', schema: ['Deposit', schemas.deposit] },
    ],
  },
  {
    id: 'adjustBalance',
    method: 'post',
    path: '/admin/accounts/{id}/adjustments',
    summary: 'Adds to a balance or takes from it, once per reference',
    ...admin,
    body: adjustmentSchema,
    answers: [
      { status: 200, description: 'It was made before.', schema: ['Adjustment', schemas.adjustment] },
      { status: 201, description: 'It was made now.', schema: ['Adjustment', schemas.adjustment] },
    ],
  },
]
