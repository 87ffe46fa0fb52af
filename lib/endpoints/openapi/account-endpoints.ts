import {
  accountChangeSchema,
  adjustmentSchema,
  depositSchema,
  newAccountSchema,
} from '../admin/accounts/account-schemas.ts'
import { pageQuery } from '../admin/page-query.ts'
import * as schemas from './answer-schemas.ts'
import { adminEndpoint, answersWith, type Endpoint } from './endpoint.ts'

export const ACCOUNT_ENDPOINTS: readonly Endpoint[] = [
  adminEndpoint('get', '/admin/accounts', 'listAccounts', {
    summary: 'Accounts, by their ids',
    query: pageQuery,
    answers: answersWith('AccountList', schemas.listOf(schemas.account)),
  }),
  adminEndpoint('post', '/admin/accounts', 'createAccount', {
    summary: 'Creates an account',
    body: newAccountSchema,
    answers: answersWith('Account', schemas.account, 201),
  }),
  adminEndpoint('get', '/admin/accounts/{id}', 'getAccount', {
    summary: 'One account',
    answers: answersWith('Account', schemas.account),
  }),
  adminEndpoint('patch', '/admin/accounts/{id}', 'changeAccount', {
    summary: 'Changes the settings of an account',
    body: accountChangeSchema,
    answers: answersWith('Account', schemas.account),
  }),
  adminEndpoint('post', '/admin/accounts/{id}/deposits', 'deposit', {
    summary: 'Adds to a balance, once per reference',
    body: depositSchema,
    answers: [
      { status: 200, description: 'The deposit was made before.', schema: ['Deposit', schemas.deposit] },
      { status: 201, description: 'The deposit was made now.', schema: ['Deposit', schemas.deposit] },
    ],
  }),
  adminEndpoint('post', '/admin/accounts/{id}/adjustments', 'adjustBalance', {
    summary: 'Adds to a balance or takes from it, once per reference',
    body: adjustmentSchema,
    answers: [
      { status: 200, description: 'It was made before.', schema: ['Adjustment', schemas.adjustment] },
      { status: 201, description: 'It was made now.', schema: ['Adjustment', schemas.adjustment] },
    ],
  }),
]
