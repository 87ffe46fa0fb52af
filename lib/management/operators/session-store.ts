import type { Role } from '../../core/call/index.ts'
import { type ChangeOrigin, changedObject, type RecordedChange } from '../../core/change-log/index.ts'

/** The session of an operator who signed in at a provider. Its secret is not stored. Times are milliseconds since the epoch. */
export interface OperatorSession {
  readonly id: string
  /** The operator's name in the change log. */
  readonly name: string
  readonly roles: readonly Role[]
  readonly createdAt: number
  readonly expiresAt: number
}

/** A session to be opened. */
export interface NewSession extends Omit<OperatorSession, 'createdAt'> {
  /** The hash that `hashSecret` returns. */
  readonly secretHash: string
}

/** A store for sessions of operators. Operations reject if the store cannot be reached. */
export interface SessionStore {
  /** Opens a session, records that, and deletes expired ones. */
  open(session: NewSession, origin: ChangeOrigin): Promise<void>

  /**
   * Finds the session of a secret that has not expired.
   *
   * @param at the present time.
   */
  findBySecret(secretHash: string, at: number): Promise<OperatorSession | undefined>

  /** Returns the sessions that have not expired, ordered by id. */
  list(query: {
    readonly after?: string | undefined
    readonly limit: number
    readonly at: number
  }): Promise<readonly OperatorSession[]>

  /**
   * Ends a session and records that.
   *
   * @returns whether there was one.
   */
  end(id: string, origin: ChangeOrigin): Promise<boolean>
}

export function sessionChange(
  action: 'session.opened' | 'session.ended',
  { id, name, roles }: Pick<OperatorSession, 'id' | 'name' | 'roles'>,
  origin: ChangeOrigin,
): RecordedChange {
  return changedObject(action, id, { name, roles }, origin)
}
