import type { Request, Response, Router } from 'express'
import { z } from 'zod'
import { hasRole, isRequestId } from '../../core/call/index.ts'
import type { ChangeLog, RecordedChange } from '../../core/change-log/index.ts'
import { isoTime, listPage, newRouter, ownQuery, pageMembers, readQuery } from '../../core/json-api/index.ts'

export const changeQuery = z.strictObject({
  ...pageMembers(isRequestId),
  subject: z.string({ error: 'must be one id' }).optional(),
})

/** Returns the route of `/changes`: the changes that operators have made, newest first. */
export function changeRoutes(changes: ChangeLog): Router {
  const router = newRouter()
  router.get('/changes', ownQuery, listChanges)
  return router

  async function listChanges(req: Request, res: Response): Promise<void> {
    const { limit, cursor, subject } = readQuery(req, changeQuery)
    const found = await changes.list({ subject, before: cursor, limit: limit + 1 })
    const rows = found.map((change) => ({ ...change, id: change.requestId }))
    const mayReadTickets = hasRole(req, 'support')
    res.json(listPage(rows, limit, (row) => describeChange(mayReadTickets ? row : withoutReply(row))))
  }
}

function describeChange({ requestId, at, actor, action, subject, before, after }: RecordedChange) {
  return {
    id: requestId,
    object: 'change',
    at: isoTime(at),
    actor,
    action,
    subject,
    before,
    after,
  }
}

/** Replies to tickets are for those who may read tickets. */
function withoutReply(change: RecordedChange): RecordedChange {
  if (change.action !== 'ticket.changed') return change
  const hide = (side: object | null) => side && { ...side, reply: null }
  return { ...change, before: hide(change.before), after: hide(change.after) }
}
