import { ROLES, type Role } from 'express-model-gateway'

export type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the roles that a claim holds: one name, or a list. Names that are no roles are ignored. The claim may be a path
 * into objects, such as `realm_access.roles`.
 */
export function rolesIn(claims: Claims, claim: string): readonly Role[] {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : at(claims, claim.split('.'))
  const names = Array.isArray(value) ? value : [value]
  return ROLES.filter((role) => names.includes(role))
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, name)) return undefined
    return (inner as Claims)[name]
  }, value)
}

const MAX_NAME = 200

/**
 * Returns the name for the change log. A person can often choose the address and the name that the provider shows, so the
 * subject stands behind it.
 */
export function nameIn({ sub, email, preferred_username: username }: Claims): string {
  const subject = printable(sub)
  const shown = printable(email) || printable(username)
  if (shown === '' || shown === subject) return subject.slice(0, MAX_NAME)
  return `${shown.slice(0, MAX_NAME - subject.length - 3)} (${subject})`.slice(0, MAX_NAME)
}

function printable(value: unknown): string {
  return typeof value === 'string' ? value.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 150) : ''
}
