/** The role and the credential of the user. */
export interface Session {
  /** A key gives access to its account, the token to all. */
  readonly kind: 'key' | 'admin'
  readonly secret: string
}

/** The key in `sessionStorage`, which is deleted with the tab and not shared with other tabs. */
const PLACE = 'express-model-gateway.console'

/** Returns the session of this tab, if there is one. */
export function currentSession(): Session | undefined {
  const stored: unknown = JSON.parse(sessionStorage.getItem(PLACE) ?? 'null')
  return isSession(stored) ? stored : undefined
}

export function keepSession({ kind, secret }: Session): void {
  sessionStorage.setItem(PLACE, JSON.stringify({ kind, secret }))
}

export function forgetSession(): void {
  sessionStorage.removeItem(PLACE)
}

function isSession(value: unknown): value is Session {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('secret' in value)) return false
  return (value.kind === 'key' || value.kind === 'admin') && typeof value.secret === 'string'
}
