import { z } from 'zod'
import { accountChangeSchema, depositSchema, newAccountSchema } from '../admin/accounts/account-schemas.ts'
import { changeQuery } from '../admin/change-routes.ts'
import { keyQuery } from '../admin/keys/key-routes.ts'
import { keyChangeSchema, newKeySchema } from '../admin/keys/key-schemas.ts'
import { lineChangeSchema } from '../admin/lines/line-routes.ts'
import { pageQuery } from '../admin/page-query.ts'
import { resolutionSchema } from '../admin/videos/video-task-schemas.ts'
import { VIDEO_TASK_STATES } from '../admin/videos/video-tasks-view.ts'
import { allCallsQuerySchema } from '../calls/call-query.ts'
import { ticketChangeSchema, ticketQuery } from '../tickets/ticket-schemas.ts'
import * as shown from './answer-schemas.ts'
import type { Answer, Endpoint } from './endpoint.ts'
import { modelLookUps } from './model-look-ups.ts'

const of = { tag: 'Admin', opens: 'admin' } as const

const videoTaskQuery = pageQuery.extend({
  state: z.enum(VIDEO_TASK_STATES).optional(),
  account: z.string().optional(),
})

const shows = (name: string, schema: NonNullable<Answer['schema']>[1], status = 200): readonly Answer[] => [
  { status, description: name, schema: [name, schema] },
]

/** What operators can ask. */
export const ADMIN_ENDPOINTS: readonly Endpoint[] = [
  {
    id: 'listAccounts',
    method: 'get',
    path: '/admin/accounts',
    summary: 'Accounts, by their ids',
    ...of,
    query: pageQuery,
    answers: shows('AccountList', shown.listOf(shown.account)),
  },
  {
    id: 'createAccount',
    method: 'post',
    path: '/admin/accounts',
    summary: 'Makes an account',
    ...of,
    body: newAccountSchema,
    answers: shows('Account', shown.account, 201),
  },
  {
    id: 'getAccount',
    method: 'get',
    path: '/admin/accounts/{id}',
    summary: 'One account',
    ...of,
    answers: shows('Account', shown.account),
  },
  {
    id: 'changeAccount',
    method: 'patch',
    path: '/admin/accounts/{id}',
    summary: 'Changes what is said of an account',
    ...of,
    body: accountChangeSchema,
    answers: shows('Account', shown.account),
  },
  {
    id: 'deposit',
    method: 'post',
    path: '/admin/accounts/{id}/deposits',
    summary: 'Adds to a balance, once per reference',
    ...of,
    body: depositSchema,
    answers: [
      { status: 200, description: 'It had come before.', schema: ['Deposit', shown.deposit] },
      { status: 201, description: 'It came now.', schema: ['Deposit', shown.deposit] },
    ],
  },
  {
    id: 'listKeys',
    method: 'get',
    path: '/admin/keys',
    summary: 'API keys, by their ids',
    ...of,
    query: keyQuery,
    answers: shows('KeyList', shown.listOf(shown.key)),
  },
  {
    id: 'createKey',
    method: 'post',
    path: '/admin/keys',
    summary: 'Makes a key, and tells its secret this once',
    ...of,
    body: newKeySchema,
    answers: shows('KeyWithSecret', shown.keyWithSecret, 201),
  },
  {
    id: 'getKey',
    method: 'get',
    path: '/admin/keys/{id}',
    summary: 'One key',
    ...of,
    answers: shows('Key', shown.key),
  },
  {
    id: 'changeKey',
    method: 'patch',
    path: '/admin/keys/{id}',
    summary: 'Changes what is said of a key',
    ...of,
    body: keyChangeSchema,
    answers: shows('Key', shown.key),
  },
  {
    id: 'deleteKey',
    method: 'delete',
    path: '/admin/keys/{id}',
    summary: 'Deletes a key for good',
    ...of,
    answers: shows('DeletedKey', shown.deletedKey),
  },
  {
    id: 'rotateKey',
    method: 'post',
    path: '/admin/keys/{id}/rotate',
    summary: 'Gives a key another secret, told this once',
    ...of,
    answers: shows('KeyWithSecret', shown.keyWithSecret),
  },
  {
    id: 'listLines',
    method: 'get',
    path: '/admin/lines',
    summary: 'Lines, and how they do',
    ...of,
    query: pageQuery,
    answers: shows('LineList', shown.listOf(shown.line)),
  },
  {
    id: 'getLine',
    method: 'get',
    path: '/admin/lines/{id}',
    summary: 'One line',
    ...of,
    answers: shows('Line', shown.line),
  },
  {
    id: 'switchLine',
    method: 'patch',
    path: '/admin/lines/{id}',
    summary: 'Switches a line on or off, in every process',
    ...of,
    body: lineChangeSchema,
    answers: shows('Line', shown.line),
  },
  ...modelLookUps('/admin/models', ['listAllModels', 'getAnyModel', 'getAnyRouting'], of),
  {
    id: 'listAllCalls',
    method: 'get',
    path: '/admin/calls',
    summary: 'Calls of all accounts, newest first',
    ...of,
    query: allCallsQuerySchema,
    answers: shows('CallList', shown.listOf(shown.call)),
  },
  {
    id: 'getAnyCall',
    method: 'get',
    path: '/admin/calls/{request_id}',
    summary: 'One call, of any account',
    ...of,
    answers: shows('Call', shown.call),
  },
  {
    id: 'listTickets',
    method: 'get',
    path: '/admin/tickets',
    summary: 'Tickets, newest first, each with its call',
    ...of,
    query: ticketQuery,
    answers: shows('TicketWithCallList', shown.listOf(shown.ticketWithCall)),
  },
  {
    id: 'getAnyTicket',
    method: 'get',
    path: '/admin/tickets/{id}',
    summary: 'One ticket with its call',
    ...of,
    answers: shows('TicketWithCall', shown.ticketWithCall),
  },
  {
    id: 'handleTicket',
    method: 'patch',
    path: '/admin/tickets/{id}',
    summary: 'Answers a ticket, or changes its status',
    ...of,
    body: ticketChangeSchema,
    answers: shows('TicketWithCall', shown.ticketWithCall),
  },
  {
    id: 'listLeases',
    method: 'get',
    path: '/admin/leases',
    summary: 'What processes have set aside to spend',
    ...of,
    query: pageQuery,
    answers: shows('LeaseList', shown.listOf(shown.lease)),
  },
  {
    id: 'checkLedger',
    method: 'get',
    path: '/admin/ledger/check',
    summary: 'The rules of the ledger, recomputed',
    ...of,
    answers: shows('LedgerCheck', shown.ledgerCheck),
  },
  {
    id: 'listVideoTasks',
    method: 'get',
    path: '/admin/video-tasks',
    summary: 'Video tasks of all accounts, newest first',
    ...of,
    query: videoTaskQuery,
    answers: shows('VideoTaskList', shown.listOf(shown.videoTask)),
  },
  {
    id: 'getVideoTask',
    method: 'get',
    path: '/admin/video-tasks/{id}',
    summary: 'One video task',
    ...of,
    answers: shows('VideoTask', shown.videoTask),
  },
  {
    id: 'resolveVideoTask',
    method: 'post',
    path: '/admin/video-tasks/{id}/resolve',
    summary: 'Charges or releases a video task that is in doubt or stuck, once',
    ...of,
    body: resolutionSchema,
    answers: shows('VideoTask', shown.videoTask),
  },
  {
    id: 'listChanges',
    method: 'get',
    path: '/admin/changes',
    summary: 'What operators have changed, newest first',
    ...of,
    query: changeQuery,
    answers: shows('ChangeList', shown.listOf(shown.change)),
  },
]
