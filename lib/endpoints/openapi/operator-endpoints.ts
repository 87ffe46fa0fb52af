import {
  newOperatorSchema,
  operatorChangeSchema,
  operatorRotationSchema,
} from '../admin/operators/operator-schemas.ts'
import { pageQuery } from '../admin/page-query.ts'
import { deleted, listOf } from './answer-schemas.ts'
import { adminEndpoint, answersWith, type Endpoint } from './endpoint.ts'
import * as schemas from './operator-answers.ts'

/** The endpoints that say who may use the others. */
export const OPERATOR_ENDPOINTS: readonly Endpoint[] = [
  adminEndpoint('get', '/admin/operators', 'listOperators', {
    summary: 'Operators with tokens of their own, by their ids',
    query: pageQuery,
    answers: answersWith('OperatorList', listOf(schemas.operator)),
  }),
  adminEndpoint('post', '/admin/operators', 'createOperator', {
    summary: 'Creates an operator; the token is in this answer only',
    body: newOperatorSchema,
    answers: answersWith('OperatorWithToken', schemas.operatorWithToken, 201),
  }),
  adminEndpoint('get', '/admin/operators/{id}', 'getOperator', {
    summary: 'One operator',
    answers: answersWith('Operator', schemas.operator),
  }),
  adminEndpoint('patch', '/admin/operators/{id}', 'changeOperator', {
    summary: 'Changes the name or the role of an operator',
    body: operatorChangeSchema,
    answers: answersWith('Operator', schemas.operator),
  }),
  adminEndpoint('delete', '/admin/operators/{id}', 'deleteOperator', {
    summary: 'Deletes an operator; the token becomes invalid',
    answers: answersWith('DeletedOperator', deleted('operator')),
  }),
  adminEndpoint('post', '/admin/operators/{id}/rotate', 'rotateOperatorToken', {
    summary: 'Gives an operator a new token, which is in this answer only',
    body: operatorRotationSchema,
    answers: answersWith('OperatorWithToken', schemas.operatorWithToken),
  }),
  adminEndpoint('get', '/admin/session', 'getSession', {
    summary: 'Who sends the request, in which roles',
    answers: answersWith('OwnSession', schemas.ownSession),
  }),
  adminEndpoint('delete', '/admin/session', 'endOwnSession', {
    summary: 'Ends the session of the request: signs out of the console',
    answers: answersWith('EndedSession', deleted('session')),
  }),
  adminEndpoint('get', '/admin/sessions', 'listSessions', {
    summary: 'The sessions of those who signed in at a provider',
    query: pageQuery,
    answers: answersWith('SessionList', listOf(schemas.session)),
  }),
  adminEndpoint('delete', '/admin/sessions/{id}', 'endSession', {
    summary: 'Ends a session',
    answers: answersWith('EndedSession', deleted('session')),
  }),
]
