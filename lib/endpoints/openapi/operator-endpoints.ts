import { z } from 'zod'
import { ROLES } from '../../core/call/index.ts'
import {
  newOperatorSchema,
  operatorChangeSchema,
  operatorRotationSchema,
} from '../admin/operators/operator-schemas.ts'
import { pageQuery } from '../admin/page-query.ts'
import { deleted, listOf } from './answer-schemas.ts'
import { adminEndpoint, answersWith, type Endpoint } from './endpoint.ts'

const time = z.iso.datetime()

const operator = z.strictObject({
  id: z.string(),
  object: z.literal('operator'),
  name: z.string(),
  role: z.enum(ROLES),
  previous_token_until: time.nullable().describe('Until when the token before the last rotation is valid.'),
  created_at: time,
})

const operatorWithToken = operator.extend({ token: z.string() })

const ownSession = z.strictObject({
  object: z.literal('session'),
  name: z.string(),
  roles: z.array(z.enum(ROLES)),
  expires_at: time.nullable().describe('null: a token sent the request.'),
})

const session = ownSession.extend({ id: z.string(), created_at: time, expires_at: time })

/** The endpoints that say who may use the others. */
export const OPERATOR_ENDPOINTS: readonly Endpoint[] = [
  adminEndpoint('get', '/admin/operators', 'listOperators', {
    summary: 'Operators with tokens of their own, by their ids',
    query: pageQuery,
    answers: answersWith('OperatorList', listOf(operator)),
  }),
  adminEndpoint('post', '/admin/operators', 'createOperator', {
    summary: 'Creates an operator; the token is in this answer only',
    body: newOperatorSchema,
    answers: answersWith('OperatorWithToken', operatorWithToken, 201),
  }),
  adminEndpoint('get', '/admin/operators/{id}', 'getOperator', {
    summary: 'One operator',
    answers: answersWith('Operator', operator),
  }),
  adminEndpoint('patch', '/admin/operators/{id}', 'changeOperator', {
    summary: 'Changes the name or the role of an operator',
    body: operatorChangeSchema,
    answers: answersWith('Operator', operator),
  }),
  adminEndpoint('delete', '/admin/operators/{id}', 'deleteOperator', {
    summary: 'Deletes an operator; the token becomes invalid',
    answers: answersWith('DeletedOperator', deleted('operator')),
  }),
  adminEndpoint('post', '/admin/operators/{id}/rotate', 'rotateOperatorToken', {
    summary: 'Gives an operator a new token, which is in this answer only',
    body: operatorRotationSchema,
    answers: answersWith('OperatorWithToken', operatorWithToken),
  }),
  adminEndpoint('get', '/admin/session', 'getSession', {
    summary: 'Who sends the request, in which roles',
    answers: answersWith('OwnSession', ownSession),
  }),
  adminEndpoint('delete', '/admin/session', 'endOwnSession', {
    summary: 'Ends the session of the request: signs out of the console',
    answers: answersWith('EndedSession', deleted('session')),
  }),
  adminEndpoint('get', '/admin/sessions', 'listSessions', {
    summary: 'The sessions of those who signed in at a provider',
    query: pageQuery,
    answers: answersWith('SessionList', listOf(session)),
  }),
  adminEndpoint('delete', '/admin/sessions/{id}', 'endSession', {
    summary: 'Ends a session',
    answers: answersWith('EndedSession', deleted('session')),
  }),
]
