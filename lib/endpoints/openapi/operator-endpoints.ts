import {
  newOperatorSchema,
  operatorChangeSchema,
  operatorRotationSchema,
} from '../admin/operators/operator-schemas.ts'
import { pageQuery } from '../admin/page-query.ts'
import { listOf } from './answer-schemas.ts'
import { answersWith, type Endpoint } from './endpoint.ts'
import * as schemas from './operator-answers.ts'

const admin = { tag: 'Admin', auth: 'admin' } as const

/** The endpoints that say who may use the others. */
export const OPERATOR_ENDPOINTS: readonly Endpoint[] = [
  {
    id: 'listOperators',
    method: 'get',
    path: '/admin/operators',
    summary: 'Operators with tokens of their own, by their ids',
    ...admin,
    query: pageQuery,
    answers: answersWith('OperatorList', listOf(schemas.operator)),
  },
  {
    id: 'createOperator',
    method: 'post',
    path: '/admin/operators',
    summary: 'Creates an operator; the token is in this answer only',
    ...admin,
    body: newOperatorSchema,
    answers: answersWith('OperatorWithToken', schemas.operatorWithToken, 201),
  },
  {
    id: 'getOperator',
    method: 'get',
    path: '/admin/operators/{id}',
    summary: 'One operator',
    ...admin,
    answers: answersWith('Operator', schemas.operator),
  },
  {
    id: 'changeOperator',
    method: 'patch',
    path: '/admin/operators/{id}',
    summary: 'Changes the name or the role of an operator',
    ...admin,
    body: operatorChangeSchema,
    answers: answersWith('Operator', schemas.operator),
  },
  {
    id: 'deleteOperator',
    method: 'delete',
    path: '/admin/operators/{id}',
    summary: 'Deletes an operator; the token becomes invalid',
    ...admin,
    answers: answersWith('DeletedOperator', schemas.deletedOperator),
  },
  {
    id: 'rotateOperatorToken',
    method: 'post',
    path: '/admin/operators/{id}/rotate',
    summary: 'Gives an operator a new token, which is in this answer only',
    ...admin,
    body: operatorRotationSchema,
    answers: answersWith('OperatorWithToken', schemas.operatorWithToken),
  },
  {
    id: 'getSession',
    method: 'get',
    path: '/admin/session',
    summary: 'Who sends the request, in which roles',
    ...admin,
    answers: answersWith('OwnSession', schemas.ownSession),
  },
  {
    id: 'endOwnSession',
    method: 'delete',
    path: '/admin/session',
    summary: 'Ends the session of the request: signs out of the console',
    ...admin,
    answers: answersWith('EndedSession', schemas.endedSession),
  },
  {
    id: 'listSessions',
    method: 'get',
    path: '/admin/sessions',
    summary: 'The sessions of those who signed in at a provider',
    ...admin,
    query: pageQuery,
    answers: answersWith('SessionList', listOf(schemas.session)),
  },
  {
    id: 'endSession',
    method: 'delete',
    path: '/admin/sessions/{id}',
    summary: 'Ends a session',
    ...admin,
    answers: answersWith('EndedSession', schemas.endedSession),
  },
]
