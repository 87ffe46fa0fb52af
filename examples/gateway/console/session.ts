import type { OwnSessionAnswer } from 'express-model-gateway/admin'

/** A role of an operator: the actions that it allows beside reading. */
export type Role = OwnSessionAnswer['roles'][number]

/** The user of the console, and the credential. */
export interface Session {
  /** A key gives access to its account, an operator to what the roles include. */
  readonly kind: 'key' | 'admin'
  /** null: the browser has a cookie, which pages cannot read. */
  readonly secret: string | null
  /** The operator's name; empty for a key. */
  readonly name: string
  /** The operator's roles; none for a key. */
  readonly roles: readonly Role[]
}

/** The key in `sessionStorage`, which is deleted with the tab and not shared with other tabs. */
const PLACE = 'express-model-gateway.console'

/** Returns the session of this tab, if there is one. */
export function currentSession(): Session | undefined {
  const stored: unknown = JSON.parse(sessionStorage.getItem(PLACE) ?? 'null')
  return isSession(stored) ? stored : undefined
}

export function keepSession({ kind, secret, name, roles }: Session): void {
  sessionStorage.setItem(PLACE, JSON.stringify({ kind, secret, name, roles }))
}

export function forgetSession(): void {
  sessionStorage.removeItem(PLACE)
}

/** Whether an operator has a role. The gateway decides; this only hides what it would refuse. */
export function may({ roles }: Pick<Session, 'roles'>, role: Role): boolean {
  return roles.includes('admin') || roles.includes(role) || (role === 'viewer' && roles.length > 0)
}

function isSession(value: unknown): value is Session {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('secret' in value)) return false
  if (!('name' in value && 'roles' in value && Array.isArray(value.roles))) return false
  const { kind, secret } = value
  return (kind === 'key' || kind === 'admin') && (typeof secret === 'string' || secret === null)
}
