import type { IncomingMessage } from 'node:http'

/**
 * The roles of operators. `viewer` reads; `support` also handles calls and tickets, `finance` usage and money; `admin` may
 * do all.
 */
export const ROLES = ['viewer', 'support', 'finance', 'admin'] as const

export type Role = (typeof ROLES)[number]

/** The operator who sends a request. */
export interface Operator {
  /** The operator's name in the change log; null: the request's own header says who it is. */
  readonly name: string | null
  readonly roles: readonly Role[]
  /** The session that the request belongs to; absent if it has a token. */
  readonly session?: { readonly id: string; readonly expiresAt: number }
}

/** Of the whole process, as the call of a request is. */
const OPERATOR = Symbol.for('express-model-gateway operator')

type OperatorCarrier = IncomingMessage & { [OPERATOR]?: Operator }

/** Notes who sends a request. Written by `adminAccess`. */
export function noteOperator(req: IncomingMessage, operator: Operator): void {
  ;(req as OperatorCarrier)[OPERATOR] = operator
}

/** Returns the operator who sends a request; undefined if another authentication than `adminAccess` let it in. */
export function operatorOf(req: IncomingMessage): Operator | undefined {
  return (req as OperatorCarrier)[OPERATOR]
}

/** Whether roles include what needs a role: `admin` includes all, and every role includes `viewer`. */
function includesRole(roles: readonly Role[], needed: Role): boolean {
  return roles.includes('admin') || roles.includes(needed) || (needed === 'viewer' && roles.length > 0)
}

/** Whether the sender of a request has a role. Behind an authentication of your own, everybody has all roles. */
export function hasRole(req: IncomingMessage, role: Role): boolean {
  const operator = operatorOf(req)
  return operator === undefined || includesRole(operator.roles, role)
}
