import type { Request } from 'express'
import { z } from 'zod'
import { callOf, operatorOf, ROLES } from '../../core/call/index.ts'
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
import { deletedOf, deletion, type ResourceParts } from '../resource.ts'
import { clearSessionCookie } from './session-cookie.ts'
import type { OperatorSession, SessionStore } from './session-store.ts'

const ownSession = z.strictObject({
  object: z.literal('session'),
  name: z.string(),
  roles: z.array(z.enum(ROLES)),
  expires_at: time.nullable().describe('null: a token sent the request.'),
})
export type OwnSessionAnswer = AnswerOf<typeof ownSession>

const session = ownSession.extend({ id: z.string(), created_at: time, expires_at: time })
export type SessionAnswer = AnswerOf<typeof session>

interface OwnSessionParts extends ResourceParts {
  /** The sessions of operators who signed in at a provider; undefined without a provider. */
  readonly sessions: SessionStore | undefined
  readonly actor: (req: Request) => string
}

const ownEndpoint = endpointFor<OwnSessionParts>()

/** The session of the request itself. */
export const OWN_SESSION_ENDPOINTS = [
  ownEndpoint({
    id: 'getSession',
    method: 'get',
    path: '/session',
    role: 'viewer',
    summary: 'Who sends the request, in which roles',
    answers: answersWith('OwnSession', ownSession),
    handle({ req }, { actor }) {
      const { name = null, roles = ['admin'], session = null } = operatorOf(req) ?? {}
      const expiresAt = session && isoTime(session.expiresAt)
      return { object: 'session' as const, name: name ?? actor(req), roles, expires_at: expiresAt }
    },
  }),
  ownEndpoint({
    id: 'endOwnSession',
    method: 'delete',
    path: '/session',
    role: 'viewer',
    summary: 'Ends the session of the request: signs out of the console',
    answers: answersWith('EndedSession', deletedOf('session')),
    handle({ req, res }, { sessions, origin }) {
      const own = operatorOf(req)?.session
      // A token has no session, and stays valid.
      if (!sessions || !own) throw callOf(req).refuse('not_found')
      clearSessionCookie(res)
      return end(req, own.id, { sessions, origin })
    },
  }),
]

interface SessionParts extends ResourceParts {
  readonly sessions: SessionStore
}

const endpoint = endpointFor<SessionParts>()

/** All sessions. */
export const SESSION_ENDPOINTS = [
  endpoint({
    id: 'listSessions',
    method: 'get',
    path: '/sessions',
    role: 'admin',
    summary: 'The sessions of those who signed in at a provider',
    query: pageQuery,
    answers: answersWith('SessionList', listOf(session)),
    async handle({ req, query: { limit, cursor } }, { sessions }) {
      const found = await sessions.list({ after: cursor, limit: limit + 1, at: callOf(req).startedAt })
      return listPage(found, limit, describe)
    },
  }),
  endpoint({
    id: 'endSession',
    method: 'delete',
    path: '/sessions/{id}',
    role: 'admin',
    summary: 'Ends a session',
    answers: answersWith('EndedSession', deletedOf('session')),
    handle: ({ req, id }, parts) => end(req, id, parts),
  }),
]

async function end(req: Request, id: string, { sessions, origin }: SessionParts) {
  orNotFound(req, await sessions.end(id, origin(req)))
  return deletion('session', id)
}

function describe({ id, name, roles, createdAt, expiresAt }: OperatorSession): SessionAnswer {
  return {
    id,
    object: 'session',
    name,
    roles,
    created_at: isoTime(createdAt),
    expires_at: isoTime(expiresAt),
  }
}
