import type { NextFunction, Request, Response, Router } from 'express'
import { callOf, hasRole, operatorOf, type Role } from '../../../core/call/index.ts'
import { protocolRouter } from '../../../core/json-api/index.ts'

/**
 * The role that each route of the admin API needs. A route that is not listed needs `admin`: so does all that returns or
 * makes secrets, and all that opens or closes the gateway to somebody.
 */
const ROLE_RULES: readonly (readonly [
  role: Role,
  method: 'get' | 'post' | 'patch' | 'delete',
  path: string,
])[] = [
  ['viewer', 'get', '/accounts'],
  ['viewer', 'get', '/accounts/:id'],
  ['viewer', 'get', '/budgets'],
  ['viewer', 'get', '/budgets/:id'],
  ['viewer', 'get', '/calls'],
  ['viewer', 'get', '/calls/:request_id'],
  ['viewer', 'get', '/changes'],
  ['viewer', 'get', '/drift'],
  ['viewer', 'get', '/keys'],
  ['viewer', 'get', '/keys/:id'],
  ['viewer', 'get', '/leases'],
  ['viewer', 'get', '/lines'],
  ['viewer', 'get', '/lines/:id'],
  ['viewer', 'get', '/models'],
  ['viewer', 'get', '/models/*id'],
  ['viewer', 'get', '/regions'],
  ['viewer', 'get', '/session'],
  ['viewer', 'delete', '/session'],
  ['viewer', 'get', '/usage'],
  ['viewer', 'get', '/video-tasks'],
  ['viewer', 'get', '/video-tasks/:id'],
  // A ticket quotes what a caller asked a model.
  ['support', 'get', '/tickets'],
  ['support', 'get', '/tickets/:id'],
  ['support', 'patch', '/tickets/:id'],
  // The check reads every charge, for minutes.
  ['finance', 'get', '/ledger/check'],
  ['finance', 'post', '/accounts/:id/deposits'],
  ['finance', 'post', '/accounts/:id/adjustments'],
  ['finance', 'post', '/budgets'],
  ['finance', 'patch', '/budgets/:id'],
  ['finance', 'delete', '/budgets/:id'],
  ['finance', 'post', '/video-tasks/:id/resolve'],
]

/** Returns a middleware that lets a request pass if its operator has the role that its route needs. */
export function roleRules(): Router {
  const rules = protocolRouter()
  for (const [role, method, path] of ROLE_RULES) {
    // The router that serves the route reads paths in the same way, so both agree about what a path is.
    rules[method](path, (req: Request, _res: Response, next: NextFunction) => check(req, role, next))
  }
  return rules.use((req: Request, _res: Response, next: NextFunction) => check(req, 'admin', next))
}

function check(req: Request, role: Role, next: NextFunction): void {
  if (hasRole(req, role)) next('router')
  else next(callOf(req).refuse('role_not_allowed', { message: refusal(role, operatorOf(req)?.roles ?? []) }))
}

function refusal(needed: Role, roles: readonly Role[]): string {
  const named = needed === 'admin' ? '"admin"' : `"${needed}" or "admin"`
  return `This needs the role ${named}. Yours is "${roles.join('", "')}".`
}
