/** Who is signed in, and with what. */
export interface Session {
  /** A key sees its own account, the token everything. */
  readonly kind: 'key' | 'admin'
  readonly secret: string
}

/** Forgotten by the browser when its tab is closed, and shared with no other tab. */
const PLACE = 'express-model-gateway.console'

/** The session of this tab, if somebody is signed in. */
export function currentSession(): Session | undefined {
  const kept: unknown = JSON.parse(sessionStorage.getItem(PLACE) ?? 'null')
  return isSession(kept) ? kept : undefined
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
