import { z } from 'zod'
import { hasRole, isRequestId } from '../../core/call/index.ts'
import type { ChangeLog, RecordedChange } from '../../core/change-log/index.ts'
import {
  type AnswerOf,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  pageMembers,
  time,
} from '../../core/json-api/index.ts'

const side = z.record(z.string(), z.unknown()).nullable()

const change = z.strictObject({
  id: z.string(),
  object: z.literal('change'),
  at: time,
  actor: z.string(),
  action: z.string(),
  subject: z.string(),
  before: side,
  after: side,
})
export type ChangeAnswer = AnswerOf<typeof change>

const endpoint = endpointFor<{ readonly changes: ChangeLog }>()

export const CHANGE_ENDPOINTS = [
  endpoint({
    id: 'listChanges',
    method: 'get',
    path: '/changes',
    role: 'viewer',
    summary: 'Changes by operators, newest first',
    query: z.strictObject({
      ...pageMembers(isRequestId),
      subject: z.string({ error: 'must be one id' }).optional(),
    }),
    answers: answersWith('ChangeList', listOf(change)),
    async handle({ req, query: { limit, cursor, subject } }, { changes }) {
      const found = await changes.list({ subject, before: cursor, limit: limit + 1 })
      const rows = found.map((row) => ({ ...row, id: row.requestId }))
      const mayReadTickets = hasRole(req, 'support')
      return listPage(rows, limit, (row) => describe(mayReadTickets ? row : withoutReply(row)))
    },
  }),
]

function describe({ requestId, at, actor, action, subject, before, after }: RecordedChange): ChangeAnswer {
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
