import type { Request, Response, Router } from 'express'
import { z } from 'zod'
import { isRequestId } from '../../core/call/index.ts'
import type { ChangeLog, RecordedChange } from '../../core/change-log/index.ts'
import { listPage, newRouter, pageMembers, readQuery } from '../../core/json-api/index.ts'

/** The query of `GET /changes`. */
export const changeQuery = z.object({
  ...pageMembers(isRequestId),
  subject: z.string({ error: 'must be one id' }).optional(),
})

/** Returns the route of `/changes`: the changes that operators have made, newest first. */
export function changeRoutes(changes: ChangeLog): Router {
  const router = newRouter()
  router.get('/changes', listChanges)
  return router

  async function listChanges(req: Request, res: Response): Promise<void> {
    const { limit, cursor, subject } = readQuery(req, changeQuery)
    const found = await changes.list({ subject, before: cursor, limit: limit + 1 })
    const rows = found.map((change) => ({ ...change, id: change.requestId }))
    res.json(listPage(rows, limit, describeChange))
  }
}

function describeChange({ requestId, at, actor, action, subject, before, after }: RecordedChange) {
  return {
    id: requestId,
    object: 'change',
    at: new Date(at).toISOString(),
    actor,
    action,
    subject,
    before,
    after,
  }
}
