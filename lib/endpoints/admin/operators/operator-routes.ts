import type { Request, Response, Router } from 'express'
import { callOf } from '../../../core/call/index.ts'
import { hashSecret } from '../../../core/catalog/index.ts'
import { changeOrigin } from '../../../core/change-log/index.ts'
import {
  idIn,
  isoTime,
  jsonBody,
  listPage,
  newRouter,
  orNotFound,
  ownQuery,
  readBody,
  readQuery,
} from '../../../core/json-api/index.ts'
import { newId } from '../new-id.ts'
import { pageQuery } from '../page-query.ts'
import { newOperatorSchema, operatorChangeSchema, operatorRotationSchema } from './operator-schemas.ts'
import type { OperatorStore, StoredOperator } from './operator-store.ts'
import { newOperatorToken } from './operator-token.ts'

export interface OperatorRoutesOptions {
  readonly operators: OperatorStore
  readonly actor: (req: Request) => string
}

/** Returns the routes of `/operators`: who may use the admin API, in which role. A token is in the answer once. */
export function operatorRoutes({ operators, actor }: OperatorRoutesOptions): Router {
  const router = newRouter()
  router.get('/operators', ownQuery, listOperators)
  router.post('/operators', jsonBody, createOperator)
  router.get('/operators/:id', showOperator)
  router.patch('/operators/:id', jsonBody, changeOperator)
  router.delete('/operators/:id', deleteOperator)
  router.post('/operators/:id/rotate', jsonBody, rotateToken)
  return router

  async function listOperators(req: Request, res: Response): Promise<void> {
    const { limit, cursor } = readQuery(req, pageQuery)
    const found = await operators.list({ after: cursor, limit: limit + 1 })
    res.json(listPage(found, limit, describeOperator))
  }

  async function createOperator(req: Request, res: Response): Promise<void> {
    const settings = readBody(req, newOperatorSchema)
    const token = newOperatorToken()
    const id = newId('op')
    const origin = changeOrigin(req, actor)
    const operator = await operators.create({ id, ...settings, tokenHash: hashSecret(token) }, origin)
    if (!operator) throw nameTaken(req)
    res.status(201).json({ ...describeOperator(operator), token })
  }

  async function showOperator(req: Request, res: Response): Promise<void> {
    res.json(describeOperator(orNotFound(req, await operators.find(idIn(req)))))
  }

  async function changeOperator(req: Request, res: Response): Promise<void> {
    const { name, role } = readBody(req, operatorChangeSchema)
    const members = { ...(name !== undefined && { name }), ...(role !== undefined && { role }) }
    const changed = await operators.change(idIn(req), members, changeOrigin(req, actor))
    if (changed === 'taken') throw nameTaken(req)
    res.json(describeOperator(orNotFound(req, changed)))
  }

  async function rotateToken(req: Request, res: Response): Promise<void> {
    const { overlap_seconds: overlap } = readBody(req, operatorRotationSchema)
    const token = newOperatorToken()
    const origin = changeOrigin(req, actor)
    const previousUntil = overlap === 0 ? null : origin.at + overlap * 1000
    const operator = await operators.rotate(idIn(req), hashSecret(token), previousUntil, origin)
    res.json({ ...describeOperator(orNotFound(req, operator)), token })
  }

  async function deleteOperator(req: Request, res: Response): Promise<void> {
    const id = idIn(req)
    if (!(await operators.delete(id, changeOrigin(req, actor)))) throw callOf(req).refuse('not_found')
    res.json({ id, object: 'operator', deleted: true })
  }
}

function nameTaken(req: Request) {
  const message = 'An operator with this name exists. Choose another name: the change log has it.'
  return callOf(req).refuse('conflict', { message })
}

function describeOperator({ id, name, role, previousUntil, createdAt }: StoredOperator) {
  return {
    id,
    object: 'operator',
    name,
    role,
    previous_token_until: isoTime(previousUntil),
    created_at: isoTime(createdAt),
  }
}
