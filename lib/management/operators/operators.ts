import type { Request } from 'express'
import { z } from 'zod'
import { callOf, ROLES } from '../../core/call/index.ts'
import { hashSecret } from '../../core/catalog/index.ts'
import {
  type AnswerOf,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  orNotFound,
  pageQuery,
  time,
} from '../../core/json-api/index.ts'
import { deletedOf, deletion, newId, type ResourceParts, rotationOf } from '../resource.ts'
import type { OperatorStore, StoredOperator } from './operator-store.ts'
import { newOperatorToken } from './operator-token.ts'

const role = z.enum(ROLES)

const newOperator = z.strictObject({
  // The change log shows it. `X-Admin-Actor` has the same form.
  name: z.string().regex(/^[\x20-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters'),
  role,
})

const operator = z.strictObject({
  id: z.string(),
  object: z.literal('operator'),
  name: z.string(),
  role,
  previous_token_until: time.nullable().describe('Until when the token before the last rotation is valid.'),
  created_at: time,
})
export type OperatorAnswer = AnswerOf<typeof operator>

const operatorWithToken = operator.extend({ token: z.string() })

interface OperatorParts extends ResourceParts {
  readonly operators: OperatorStore
}

const endpoint = endpointFor<OperatorParts>()

/** The operators with tokens of their own. A token is in the answer once. */
export const OPERATOR_ENDPOINTS = [
  endpoint({
    id: 'listOperators',
    method: 'get',
    path: '/operators',
    role: 'admin',
    summary: 'Operators with tokens of their own, by their ids',
    query: pageQuery,
    answers: answersWith('OperatorList', listOf(operator)),
    async handle({ query: { limit, cursor } }, { operators }) {
      return listPage(await operators.list({ after: cursor, limit: limit + 1 }), limit, describe)
    },
  }),
  endpoint({
    id: 'createOperator',
    method: 'post',
    path: '/operators',
    role: 'admin',
    summary: 'Creates an operator; the token is in this answer only',
    body: newOperator,
    answers: answersWith('OperatorWithToken', operatorWithToken, 201),
    async handle({ req, body }, { operators, origin }) {
      const token = newOperatorToken()
      const made = { id: newId('op'), ...body, tokenHash: hashSecret(token) }
      const created = await operators.create(made, origin(req))
      if (!created) throw nameTaken(req)
      return { ...describe(created), token }
    },
  }),
  endpoint({
    id: 'getOperator',
    method: 'get',
    path: '/operators/{id}',
    role: 'admin',
    summary: 'One operator',
    answers: answersWith('Operator', operator),
    async handle({ req, id }, { operators }) {
      return describe(orNotFound(req, await operators.find(id)))
    },
  }),
  endpoint({
    id: 'changeOperator',
    method: 'patch',
    path: '/operators/{id}',
    role: 'admin',
    summary: 'Changes the name or the role of an operator',
    body: newOperator.partial(),
    answers: answersWith('Operator', operator),
    async handle({ req, id, body: { name, role } }, { operators, origin }) {
      const members = { ...(name !== undefined && { name }), ...(role !== undefined && { role }) }
      const changed = await operators.change(id, members, origin(req))
      if (changed === 'taken') throw nameTaken(req)
      return describe(orNotFound(req, changed))
    },
  }),
  endpoint({
    id: 'deleteOperator',
    method: 'delete',
    path: '/operators/{id}',
    role: 'admin',
    summary: 'Deletes an operator; the token becomes invalid',
    answers: answersWith('DeletedOperator', deletedOf('operator')),
    async handle({ req, id }, { operators, origin }) {
      orNotFound(req, await operators.delete(id, origin(req)))
      return deletion('operator', id)
    },
  }),
  endpoint({
    id: 'rotateOperatorToken',
    method: 'post',
    path: '/operators/{id}/rotate',
    role: 'admin',
    summary: 'Gives an operator a new token, which is in this answer only',
    body: rotationOf('For how long the previous token stays valid.'),
    answers: answersWith('OperatorWithToken', operatorWithToken),
    async handle({ req, id, body: { overlap_seconds: overlap } }, { operators, origin }) {
      const token = newOperatorToken()
      const change = origin(req)
      const previousUntil = overlap === 0 ? null : change.at + overlap * 1000
      const rotated = await operators.rotate(id, hashSecret(token), previousUntil, change)
      return { ...describe(orNotFound(req, rotated)), token }
    },
  }),
]

function nameTaken(req: Request) {
  const message = 'An operator with this name exists. Choose another name: the change log has it.'
  return callOf(req).refuse('conflict', { message })
}

function describe({ id, name, role, previousUntil, createdAt }: StoredOperator): OperatorAnswer {
  return {
    id,
    object: 'operator',
    name,
    role,
    previous_token_until: isoTime(previousUntil),
    created_at: isoTime(createdAt),
  }
}
