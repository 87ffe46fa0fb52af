import { difference } from '../admin/authority/difference-schema.ts'
import { changeQuery } from '../admin/change-routes.ts'
import { keyChangeSchema, keyRotationSchema, newKeySchema } from '../admin/keys/key-schemas.ts'
import { lineChangeSchema } from '../admin/lines/line-routes.ts'
import { accountPageQuery, pageQuery } from '../admin/page-query.ts'
import { region } from '../admin/regions/region-routes.ts'
import { resolutionSchema, videoTaskQuery } from '../admin/videos/video-task-schemas.ts'
import { allCallsQuerySchema } from '../calls/call-query.ts'
import { ticketChangeSchema, ticketQuery } from '../tickets/ticket-schemas.ts'
import { allUsageQuerySchema } from '../usage/usage-query.ts'
import { ACCOUNT_ENDPOINTS } from './account-endpoints.ts'
import * as schemas from './answer-schemas.ts'
import { BUDGET_ENDPOINTS } from './budget-endpoints.ts'
import { call } from './call-schema.ts'
import { ADMIN, adminEndpoint, answersWith, type Endpoint } from './endpoint.ts'
import { modelCatalogEndpoints } from './model-catalog-endpoints.ts'
import { OPERATOR_ENDPOINTS } from './operator-endpoints.ts'
import { USAGE_ANSWERS } from './usage-schema.ts'
import { WEBHOOK_ENDPOINTS } from './webhook-endpoints.ts'

export const ADMIN_ENDPOINTS: readonly Endpoint[] = [
  ...OPERATOR_ENDPOINTS,
  ...ACCOUNT_ENDPOINTS,
  ...WEBHOOK_ENDPOINTS,
  ...BUDGET_ENDPOINTS,
  adminEndpoint('get', '/admin/keys', 'listKeys', {
    summary: 'API keys, by their ids',
    query: accountPageQuery,
    answers: answersWith('KeyList', schemas.listOf(schemas.key)),
  }),
  adminEndpoint('post', '/admin/keys', 'createKey', {
    summary: 'Creates a key; its secret is in this answer only',
    body: newKeySchema,
    answers: answersWith('KeyWithSecret', schemas.keyWithSecret, 201),
  }),
  adminEndpoint('get', '/admin/keys/{id}', 'getKey', {
    summary: 'One key',
    answers: answersWith('Key', schemas.key),
  }),
  adminEndpoint('patch', '/admin/keys/{id}', 'changeKey', {
    summary: 'Changes the settings of a key',
    body: keyChangeSchema,
    answers: answersWith('Key', schemas.key),
  }),
  adminEndpoint('delete', '/admin/keys/{id}', 'deleteKey', {
    summary: 'Deletes a key for good',
    answers: answersWith('DeletedKey', schemas.deleted('key')),
  }),
  adminEndpoint('post', '/admin/keys/{id}/rotate', 'rotateKey', {
    summary: 'Gives a key a new secret, which is in this answer only',
    body: keyRotationSchema,
    answers: answersWith('KeyWithSecret', schemas.keyWithSecret),
  }),
  adminEndpoint('get', '/admin/drift', 'listDrift', {
    summary: 'The differences between the config and the database',
    query: pageQuery,
    answers: answersWith('DifferenceList', schemas.listOf(difference)),
  }),
  adminEndpoint('get', '/admin/regions', 'listRegions', {
    summary: 'The other regions, and whether they answer',
    query: pageQuery,
    answers: answersWith('RegionList', schemas.listOf(region)),
  }),
  adminEndpoint('get', '/admin/lines', 'listLines', {
    summary: 'Lines and their status',
    query: pageQuery,
    answers: answersWith('LineList', schemas.listOf(schemas.line)),
  }),
  adminEndpoint('get', '/admin/lines/{id}', 'getLine', {
    summary: 'One line',
    answers: answersWith('Line', schemas.line),
  }),
  adminEndpoint('patch', '/admin/lines/{id}', 'switchLine', {
    summary: 'Switches a line on or off, in every process',
    body: lineChangeSchema,
    answers: answersWith('Line', schemas.line),
  }),
  ...modelCatalogEndpoints('/admin/models', ['listAllModels', 'getAnyModel', 'getAnyRouting'], ADMIN),
  adminEndpoint('get', '/admin/calls', 'listAllCalls', {
    summary: 'Calls of all accounts, newest first; filters by tags are `tag:<name>`',
    query: allCallsQuerySchema,
    answers: answersWith('CallList', schemas.listOf(call)),
  }),
  adminEndpoint('get', '/admin/calls/{request_id}', 'getAnyCall', {
    summary: 'One call, of any account',
    answers: answersWith('Call', call),
  }),
  adminEndpoint('get', '/admin/usage', 'getUsage', {
    summary: 'What calls have come to; filters by tags are `tag:<name>`',
    query: allUsageQuerySchema,
    answers: USAGE_ANSWERS,
  }),
  adminEndpoint('get', '/admin/tickets', 'listTickets', {
    summary: 'Tickets, newest first, each with its call',
    query: ticketQuery,
    answers: answersWith('TicketWithCallList', schemas.listOf(schemas.ticketWithCall)),
  }),
  adminEndpoint('get', '/admin/tickets/{id}', 'getAnyTicket', {
    summary: 'One ticket with its call',
    answers: answersWith('TicketWithCall', schemas.ticketWithCall),
  }),
  adminEndpoint('patch', '/admin/tickets/{id}', 'handleTicket', {
    summary: 'Answers a ticket, or changes its status',
    body: ticketChangeSchema,
    answers: answersWith('TicketWithCall', schemas.ticketWithCall),
  }),
  adminEndpoint('get', '/admin/leases', 'listLeases', {
    summary: 'The open leases of all processes',
    query: accountPageQuery,
    answers: answersWith('LeaseList', schemas.listOf(schemas.lease)),
  }),
  adminEndpoint('get', '/admin/ledger/check', 'checkLedger', {
    summary: 'The rules of the ledger, recomputed',
    answers: answersWith('LedgerCheck', schemas.ledgerCheck),
  }),
  adminEndpoint('get', '/admin/video-tasks', 'listVideoTasks', {
    summary: 'Video tasks of all accounts, newest first',
    query: videoTaskQuery,
    answers: answersWith('VideoTaskList', schemas.listOf(schemas.videoTask)),
  }),
  adminEndpoint('get', '/admin/video-tasks/{id}', 'getVideoTask', {
    summary: 'One video task',
    answers: answersWith('VideoTask', schemas.videoTask),
  }),
  adminEndpoint('post', '/admin/video-tasks/{id}/resolve', 'resolveVideoTask', {
    summary: 'Charges or releases a video task that is in doubt or stuck, once',
    body: resolutionSchema,
    answers: answersWith('VideoTask', schemas.videoTask),
  }),
  adminEndpoint('get', '/admin/changes', 'listChanges', {
    summary: 'What operators have changed, newest first',
    query: changeQuery,
    answers: answersWith('ChangeList', schemas.listOf(schemas.change)),
  }),
]
