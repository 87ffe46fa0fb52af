import { hash, timingSafeEqual } from 'node:crypto'
import type { NextFunction, Request, RequestHandler, Response, Router } from 'express'
import {
  callOf,
  hasRole,
  noteOperator,
  type OpenCall,
  type Operator,
  operatorOf,
  type Role,
} from '../../core/call/index.ts'
import { hashSecret } from '../../core/catalog/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { newRouter, routeOf } from '../../core/json-api/index.ts'
import { anObjectWith, checkOptions } from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { ADMIN_ENDPOINTS } from '../admin-endpoints.ts'
import type { OperatorStore } from './operator-store.ts'
import { isOperatorToken } from './operator-token.ts'
import { sessionSecretOf } from './session-cookie.ts'
import type { SessionStore } from './session-store.ts'
import { WrongTokens } from './wrong-tokens.ts'

/** Options of {@link adminAccess}. */
export interface AdminAccessOptions {
  /**
   * The token in `Authorization: Bearer <token>`. It gives access to all money: make it long and random. If it is undefined
   * or empty, there is no admin API and all its paths are `not_found`. A function returns all tokens that are valid now,
   * so that a new one can be used before the old one ends.
   */
  token: string | (() => readonly string[]) | undefined
  /** The operators with tokens of their own, each with a role. Defaults to none. */
  operators?: OperatorStore
  /** The sessions of operators who signed in at a provider, in a cookie. Defaults to none. */
  sessions?: SessionStore
}

/** The middleware that {@link adminAccess} returns. */
export interface AdminAccess extends RequestHandler {
  /** The number of wrong tokens since the start, for metrics. */
  readonly wrongTokens: number
  /** Counts wrong tokens by address. Count failures of other ways to sign in here too. */
  readonly guesses: WrongTokens
}

/**
 * Admits requests with the `token`, or with the token of an operator whose role the route needs, and refuses all others:
 * `missing_credential`, `invalid_credential`, `role_not_allowed`. The comparison takes constant time; tokens of operators
 * are looked up by their hash, each time. Wrong tokens are counted and logged. Beyond 20 a minute from one address, or one /56 of
 * IPv6, their answers wait, two a second; while more than ten wait, that address gets `rate_limited`.
 *
 * @throws TypeError at construction if the token has characters other than printable ASCII without spaces.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminAccess(options: AdminAccessOptions = { token: undefined }): AdminAccess {
  checkOptions('adminAccess', options, {
    token: {
      be: 'printable ASCII without spaces, or a function that returns the valid tokens',
      accepts: (value) =>
        typeof value === 'function' || (typeof value === 'string' && /^[\x21-\x7e]*$/.test(value)),
    },
    operators: anObjectWith('an OperatorStore, such as new SqlOperatorStore(db)', 'findByToken'),
    sessions: anObjectWith('a SessionStore, such as new SqlSessionStore(db)', 'findBySecret'),
  })
  const { token } = options
  const operators = options.operators && boundedStore('operators', options.operators)
  const sessions = options.sessions && boundedStore('sessions', options.sessions)
  const rules = roleRules()
  const wrong = new WrongTokens()
  if (token === undefined || token === '') return counting((req, res, next) => noAdminApi(req, res, next))
  const tokens = typeof token === 'function' ? token : () => [token]

  return counting(adminAccess)

  function counting(handler: RequestHandler): AdminAccess {
    return Object.defineProperties(handler, {
      wrongTokens: { get: () => wrong.count },
      guesses: { value: wrong },
    }) as AdminAccess
  }

  async function adminAccess(req: Request, res: Response, next: NextFunction): Promise<void> {
    const call = callOf(req)
    const pauseMs = wrong.pauseOf(call.clientIp)
    if (pauseMs > 0) {
      next(call.refuse('rate_limited', { retryAfterMs: pauseMs }))
      return
    }
    const authorization = req.headers.authorization?.trim() ?? ''
    const [, sent = ''] = /^bearer +(.+)$/i.exec(authorization) ?? []
    const cookie = sessions && authorization === '' ? sessionSecretOf(req) : undefined
    if (cookie === undefined && /^(?:bearer)?$/i.test(authorization)) {
      next(call.refuse('missing_credential', { message: MISSING }))
      return
    }
    const hashed = digest(sent)
    const operator = tokens().some((valid) => timingSafeEqual(hashed, digest(valid)))
      ? ROOT
      : cookie === undefined
        ? await operatorWith(sent, call.startedAt)
        : await operatorOfSession(cookie, call.startedAt)
    if (operator) {
      noteOperator(req, operator)
      // No endpoint has this method, and routers leave it alone.
      if (req.method === 'OPTIONS') next(roleRefusal(req, 'admin'))
      else rules(req, res, next)
    } else refuseWrong(call, next)
  }

  async function operatorWith(token: string, at: number): Promise<Operator | undefined> {
    if (!operators || !isOperatorToken(token)) return undefined
    const found = await operators.findByToken(hashSecret(token), at)
    return found && { name: found.name, roles: [found.role] }
  }

  async function operatorOfSession(secret: string, at: number): Promise<Operator | undefined> {
    const session = await sessions?.findBySecret(hashSecret(secret), at)
    return session && { name: session.name, roles: session.roles, session }
  }

  function refuseWrong(call: OpenCall, next: NextFunction): void {
    const { waitMs, isFirst } = wrong.note(call.clientIp)
    const refusal = call.refuse('invalid_credential', { message: INVALID })
    // The access log has a line for each.
    if (isFirst) call.logger.warn({ requestId: call.id, ip: call.clientIp }, 'admin: a wrong token was sent')
    if (waitMs === 0) next(refusal)
    else setTimeout(() => next(refusal), waitMs).unref()
  }
}

/** The holder of the token is an administrator; the request says which one. */
const ROOT: Operator = { name: null, roles: ['admin'] }

const MISSING = 'No admin token was sent. Send it as "Authorization: Bearer <token>".'
const INVALID =
  'The admin token is not valid. Check that it was copied completely, and send it as "Authorization: Bearer <token>".'

function noAdminApi(req: Request, _res: Response, next: NextFunction): void {
  next(callOf(req).refuse('not_found'))
}

/** Hashes a text, so that texts of all lengths can be compared in constant time. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** Returns a middleware that lets a request pass if its operator has the role that its endpoint needs; `admin` for others. */
function roleRules(): Router {
  const rules = newRouter()
  for (const endpoint of ADMIN_ENDPOINTS) {
    const { method, role = 'admin' } = endpoint
    // The router that serves the route reads paths in the same way, so both agree about what a path is.
    rules[method](routeOf(endpoint), (req: Request, _res: Response, next: NextFunction) =>
      next(roleRefusal(req, role) ?? 'router'),
    )
  }
  return rules.use((req: Request, _res: Response, next: NextFunction) => next(roleRefusal(req, 'admin')))
}

/** Returns the error for an operator without the role; undefined if the operator has it. */
function roleRefusal(req: Request, role: Role): GatewayError | undefined {
  if (hasRole(req, role)) return undefined
  return callOf(req).refuse('role_not_allowed', { message: refusal(role, operatorOf(req)?.roles ?? []) })
}

function refusal(needed: Role, roles: readonly Role[]): string {
  const named = needed === 'admin' ? '"admin"' : `"${needed}" or "admin"`
  return `This needs the role ${named}. Yours is "${roles.join('", "')}".`
}
