import type { Role } from '../../../core/call/index.ts'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type { NewSession, OperatorSession, SessionStore } from '../../../management/index.ts'
import { sessionChange } from '../../../management/operators/session-store.ts'
import { checkDatabase } from '../driver/database.ts'
import type { Database, OperatorSessionsTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { recordChange } from './sql-change-log.ts'

/**
 * A session store in a database, for all processes that share it.
 *
 * @example
 * const sessions = new SqlSessionStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlSessionStore implements SessionStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlSessionStore', db)
    this.#db = db
  }

  async open({ id, secretHash, name, roles, expiresAt }: NewSession, origin: ChangeOrigin): Promise<void> {
    await transact(this.#db, async (trx) => {
      await trx.deleteFrom('operator_sessions').where('expires_at', '<=', BigInt(origin.at)).execute()
      await trx
        .insertInto('operator_sessions')
        .values({
          id,
          secret_hash: secretHash,
          name,
          roles: roles.join(','),
          created_at: BigInt(origin.at),
          expires_at: BigInt(expiresAt),
        })
        .execute()
      await recordChange(trx, sessionChange('session.opened', { id, name, roles }, origin))
    })
  }

  async findBySecret(secretHash: string, at: number): Promise<OperatorSession | undefined> {
    const row = await this.#db
      .selectFrom('operator_sessions')
      .selectAll()
      .where('secret_hash', '=', secretHash)
      .where('expires_at', '>', BigInt(at))
      .executeTakeFirst()
    return row && toSession(row)
  }

  async list({ after = '', limit, at }: { after?: string | undefined; limit: number; at: number }) {
    const rows = await this.#db
      .selectFrom('operator_sessions')
      .selectAll()
      .where('id', '>', after)
      .where('expires_at', '>', BigInt(at))
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(toSession)
  }

  end(id: string, origin: ChangeOrigin): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      const row = await trx
        .deleteFrom('operator_sessions')
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst()
      if (!row) return false
      await recordChange(trx, sessionChange('session.ended', toSession(row), origin))
      return true
    })
  }
}

function toSession({ id, name, roles, created_at, expires_at }: OperatorSessionsTable): OperatorSession {
  return {
    id,
    name,
    roles: roles.split(',') as Role[],
    createdAt: Number(created_at),
    expiresAt: Number(expires_at),
  }
}
