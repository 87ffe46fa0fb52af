import { aChangeLog, type ChangeOrigin, MemoryChangeLog } from '../../../core/change-log/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import { pageById } from '../page-by-id.ts'
import { type NewSession, type OperatorSession, type SessionStore, sessionChange } from './session-store.ts'

/**
 * A session store in this process's memory.
 *
 * @example
 * app.use('/admin', adminAccess({ token, sessions: new MemorySessionStore() }), adminRoutes({ accounts, ledger }))
 */
export class MemorySessionStore implements SessionStore {
  /** By the hash of their secret. */
  readonly #sessions = new Map<string, OperatorSession>()
  readonly #changes: MemoryChangeLog

  /** @param options.changes where changes are recorded. Defaults to a log of its own. */
  constructor(options: { changes?: MemoryChangeLog } = {}) {
    checkOptions<{ changes?: MemoryChangeLog }>('MemorySessionStore', options, { changes: aChangeLog })
    this.#changes = options.changes ?? new MemoryChangeLog()
  }

  async open({ secretHash, ...session }: NewSession, origin: ChangeOrigin): Promise<void> {
    for (const [hash, { expiresAt }] of this.#sessions) {
      if (expiresAt <= origin.at) this.#sessions.delete(hash)
    }
    this.#sessions.set(secretHash, { ...session, createdAt: origin.at })
    this.#changes.add(sessionChange('session.opened', session, origin))
  }

  async findBySecret(secretHash: string, at: number): Promise<OperatorSession | undefined> {
    const session = this.#sessions.get(secretHash)
    return session && at < session.expiresAt ? session : undefined
  }

  async list({ after, limit, at }: { after?: string | undefined; limit: number; at: number }) {
    const open = [...this.#sessions.values()].filter(({ expiresAt }) => at < expiresAt)
    return pageById(open, limit, after)
  }

  async end(id: string, origin: ChangeOrigin): Promise<boolean> {
    for (const [hash, session] of this.#sessions) {
      if (session.id !== id) continue
      this.#sessions.delete(hash)
      this.#changes.add(sessionChange('session.ended', session, origin))
      return true
    }
    return false
  }
}
