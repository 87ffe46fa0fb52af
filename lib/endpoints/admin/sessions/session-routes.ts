import type { Request, Response, Router } from 'express'
import { callOf, operatorOf } from '../../../core/call/index.ts'
import { changeOrigin } from '../../../core/change-log/index.ts'
import { idIn, isoTime, listPage, newRouter, ownQuery, readQuery } from '../../../core/json-api/index.ts'
import { pageQuery } from '../page-query.ts'
import { clearSessionCookie } from './session-cookie.ts'
import type { OperatorSession, SessionStore } from './session-store.ts'

export interface SessionRoutesOptions {
  /** The sessions of those who signed in at a provider; undefined: nobody can. */
  readonly sessions: SessionStore | undefined
  readonly actor: (req: Request) => string
}

/** Returns the routes of `/session`, who the sender is and the end of that session, and of `/sessions`, all of them. */
export function sessionRoutes({ sessions, actor }: SessionRoutesOptions): Router {
  const router = newRouter()
  router.get('/session', showOwn)
  router.delete('/session', endOwn)
  if (sessions) {
    router.get('/sessions', ownQuery, (req, res) => listSessions(sessions, req, res))
    router.delete('/sessions/:id', (req, res) => end(sessions, idIn(req), req, res))
  }
  return router

  function showOwn(req: Request, res: Response): void {
    const { name = null, roles = ['admin'], session = null } = operatorOf(req) ?? {}
    const expiresAt = session && isoTime(session.expiresAt)
    res.json({ object: 'session', name: name ?? actor(req), roles, expires_at: expiresAt })
  }

  /** A token has no session, and stays valid. */
  async function endOwn(req: Request, res: Response): Promise<void> {
    const session = operatorOf(req)?.session
    if (!sessions || !session) throw callOf(req).refuse('not_found')
    clearSessionCookie(res)
    await end(sessions, session.id, req, res)
  }

  async function listSessions(store: SessionStore, req: Request, res: Response): Promise<void> {
    const { limit, cursor } = readQuery(req, pageQuery)
    const found = await store.list({ after: cursor, limit: limit + 1, at: callOf(req).startedAt })
    res.json(listPage(found, limit, describeSession))
  }

  async function end(store: SessionStore, id: string, req: Request, res: Response): Promise<void> {
    if (!(await store.end(id, changeOrigin(req, actor)))) throw callOf(req).refuse('not_found')
    res.json({ id, object: 'session', deleted: true })
  }
}

function describeSession({ id, name, roles, createdAt, expiresAt }: OperatorSession) {
  return {
    id,
    object: 'session',
    name,
    roles,
    created_at: isoTime(createdAt),
    expires_at: isoTime(expiresAt),
  }
}
