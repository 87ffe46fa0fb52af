import { z } from 'zod'
import { difference } from '../admin/authority/difference-schema.ts'
import { changeQuery } from '../admin/change-routes.ts'
import { keyQuery } from '../admin/keys/key-routes.ts'
import { keyChangeSchema, newKeySchema, rotationSchema } from '../admin/keys/key-schemas.ts'
import { leaseQuery } from '../admin/ledger/ledger-routes.ts'
import { lineChangeSchema } from '../admin/lines/line-routes.ts'
import { pageQuery } from '../admin/page-query.ts'
import { resolutionSchema } from '../admin/videos/video-task-schemas.ts'
import { VIDEO_TASK_STATES } from '../admin/videos/video-tasks-view.ts'
import { allCallsQuerySchema } from '../calls/call-query.ts'
import { ticketChangeSchema, ticketQuery } from '../tickets/ticket-schemas.ts'
import { allUsageQuerySchema } from '../usage/usage-query.ts'
import { ACCOUNT_ENDPOINTS } from './account-endpoints.ts'
import * as schemas from './answer-schemas.ts'
import { BUDGET_ENDPOINTS } from './budget-endpoints.ts'
import { answersWith, type Endpoint } from './endpoint.ts'
import { modelCatalogEndpoints } from './model-catalog-endpoints.ts'
import { OPERATOR_ENDPOINTS } from './operator-endpoints.ts'
import { usageList } from './usage-schema.ts'
import { WEBHOOK_ENDPOINTS } from './webhook-endpoints.ts'

const admin = { tag: 'Admin', auth: 'admin' } as const

const videoTaskQuery = pageQuery.extend({
  state: z.enum(VIDEO_TASK_STATES).optional(),
  account: z.string().optional(),
})

/** The endpoints of operators. */
export const ADMIN_ENDPOINTS: readonly Endpoint[] = [
  ...OPERATOR_ENDPOINTS,
  ...ACCOUNT_ENDPOINTS,
  ...WEBHOOK_ENDPOINTS,
  ...BUDGET_ENDPOINTS,
  {
    id: 'listKeys',
    method: 'get',
    path: '/admin/keys',
    summary: 'API keys, by their ids',
    ...admin,
    query: keyQuery,
    answers: answersWith('KeyList', schemas.listOf(schemas.key)),
  },
  {
    id: 'createKey',
    method: 'post',
    path: '/admin/keys',
    summary: 'Creates a key; its secret is in this answer only',
    ...admin,
    body: newKeySchema,
    answers: answersWith('KeyWithSecret', schemas.keyWithSecret, 201),
  },
  {
    id: 'getKey',
    method: 'get',
    path: '/admin/keys/{id}',
    summary: 'One key',
    ...admin,
    answers: answersWith('Key', schemas.key),
  },
  {
    id: 'changeKey',
    method: 'patch',
    path: '/admin/keys/{id}',
    summary: 'Changes the settings of a key',
    ...admin,
    body: keyChangeSchema,
    answers: answersWith('Key', schemas.key),
  },
  {
    id: 'deleteKey',
    method: 'delete',
    path: '/admin/keys/{id}',
    summary: 'Deletes a key for good',
    ...admin,
    answers: answersWith('DeletedKey', schemas.deletedKey),
  },
  {
    id: 'rotateKey',
    method: 'post',
    path: '/admin/keys/{id}/rotate',
    summary: 'Gives a key a new secret, which is in this answer only',
    ...admin,
    body: rotationSchema,
    answers: answersWith('KeyWithSecret', schemas.keyWithSecret),
  },
  {
    id: 'listDrift',
    method: 'get',
    path: '/admin/drift',
    summary: 'The differences between the config and the database',
    ...admin,
    query: pageQuery,
    answers: answersWith('DifferenceList', schemas.listOf(difference)),
  },
  {
    id: 'listLines',
    method: 'get',
    path: '/admin/lines',
    summary: 'Lines and their status',
    ...admin,
    query: pageQuery,
    answers: answersWith('LineList', schemas.listOf(schemas.line)),
  },
  {
    id: 'getLine',
    method: 'get',
    path: '/admin/lines/{id}',
    summary: 'One line',
    ...admin,
    answers: answersWith('Line', schemas.line),
  },
  {
    id: 'switchLine',
    method: 'patch',
    path: '/admin/lines/{id}',
    summary: 'Switches a line on or off, in every process',
    ...admin,
    body: lineChangeSchema,
    answers: answersWith('Line', schemas.line),
  },
  ...modelCatalogEndpoints('/admin/models', ['listAllModels', 'getAnyModel', 'getAnyRouting'], admin),
  {
    id: 'listAllCalls',
    method: 'get',
    path: '/admin/calls',
    summary: 'Calls of all accounts, newest first',
    ...admin,
    query: allCallsQuerySchema,
    answers: answersWith('CallList', schemas.listOf(schemas.call)),
  },
  {
    id: 'getAnyCall',
    method: 'get',
    path: '/admin/calls/{request_id}',
    summary: 'One call, of any account',
    ...admin,
    answers: answersWith('Call', schemas.call),
  },
  {
    id: 'getUsage',
    method: 'get',
    path: '/admin/usage',
    summary: 'What calls have come to; filters by tags are `tag:<name>`',
    ...admin,
    query: allUsageQuerySchema,
    answers: answersWith('UsageList', usageList),
  },
  {
    id: 'listTickets',
    method: 'get',
    path: '/admin/tickets',
    summary: 'Tickets, newest first, each with its call',
    ...admin,
    query: ticketQuery,
    answers: answersWith('TicketWithCallList', schemas.listOf(schemas.ticketWithCall)),
  },
  {
    id: 'getAnyTicket',
    method: 'get',
    path: '/admin/tickets/{id}',
    summary: 'One ticket with its call',
    ...admin,
    answers: answersWith('TicketWithCall', schemas.ticketWithCall),
  },
  {
    id: 'handleTicket',
    method: 'patch',
    path: '/admin/tickets/{id}',
    summary: 'Answers a ticket, or changes its status',
    ...admin,
    body: ticketChangeSchema,
    answers: answersWith('TicketWithCall', schemas.ticketWithCall),
  },
  {
    id: 'listLeases',
    method: 'get',
    path: '/admin/leases',
    summary: 'The open leases of all processes',
    ...admin,
    query: leaseQuery,
    answers: answersWith('LeaseList', schemas.listOf(schemas.lease)),
  },
  {
    id: 'checkLedger',
    method: 'get',
    path: '/admin/ledger/check',
    summary: 'The rules of the ledger, recomputed',
    ...admin,
    answers: answersWith('LedgerCheck', schemas.ledgerCheck),
  },
  {
    id: 'listVideoTasks',
    method: 'get',
    path: '/admin/video-tasks',
    summary: 'Video tasks of all accounts, newest first',
    ...admin,
    query: videoTaskQuery,
    answers: answersWith('VideoTaskList', schemas.listOf(schemas.videoTask)),
  },
  {
    id: 'getVideoTask',
    method: 'get',
    path: '/admin/video-tasks/{id}',
    summary: 'One video task',
    ...admin,
    answers: answersWith('VideoTask', schemas.videoTask),
  },
  {
    id: 'resolveVideoTask',
    method: 'post',
    path: '/admin/video-tasks/{id}/resolve',
    summary: 'Charges or releases a video task that is in doubt or stuck, once',
    ...admin,
    body: resolutionSchema,
    answers: answersWith('VideoTask', schemas.videoTask),
  },
  {
    id: 'listChanges',
    method: 'get',
    path: '/admin/changes',
    summary: 'What operators have changed, newest first',
    ...admin,
    query: changeQuery,
    answers: answersWith('ChangeList', schemas.listOf(schemas.change)),
  },
]
