import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type {
  NewOperator,
  OperatorSettings,
  OperatorStore,
  StoredOperator,
} from '../../../management/index.ts'
import { operatorChange, operatorSettingsChange } from '../../../management/operators/operator-store.ts'
import { toBigint, toNumber } from '../driver/columns.ts'
import { checkDatabase } from '../driver/database.ts'
import { takeTurn } from '../driver/row-locks.ts'
import type { Database, OperatorsTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { recordChange } from './sql-change-log.ts'

/**
 * An operator store in a database, for all processes that share it. A deleted operator is refused from then on in each.
 *
 * @example
 * const operators = new SqlOperatorStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlOperatorStore implements OperatorStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlOperatorStore', db)
    this.#db = db
  }

  async list({ after = '', limit }: { after?: string | undefined; limit: number }) {
    const rows = await this.#db
      .selectFrom('operators')
      .selectAll()
      .where('id', '>', after)
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(toOperator)
  }

  async find(id: string): Promise<StoredOperator | undefined> {
    const row = await this.#db.selectFrom('operators').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toOperator(row)
  }

  async findByToken(tokenHash: string, at: number): Promise<StoredOperator | undefined> {
    const row = await this.#db
      .selectFrom('operators')
      .selectAll()
      .where(({ eb, and, or }) =>
        or([
          eb('token_hash', '=', tokenHash),
          and([eb('previous_hash', '=', tokenHash), eb('previous_until', '>', BigInt(at))]),
        ]),
      )
      .executeTakeFirst()
    return row && toOperator(row)
  }

  create({ tokenHash, ...settings }: NewOperator, origin: ChangeOrigin): Promise<StoredOperator | undefined> {
    return this.#alone(async (trx) => {
      if (await isTaken(trx, settings.name)) return undefined
      await trx
        .insertInto('operators')
        .values({ ...settings, token_hash: tokenHash, created_at: BigInt(origin.at) })
        .execute()
      const operator = { ...settings, previousUntil: null, createdAt: origin.at }
      await recordChange(trx, operatorChange('operator.created', operator, origin))
      return operator
    })
  }

  change(id: string, members: Partial<OperatorSettings>, origin: ChangeOrigin) {
    return this.#withOperator(id, async (trx, before) => {
      const operator = { ...before, ...members }
      const change = operatorSettingsChange(operator, before, origin)
      if (!change) return operator
      const { name, role } = operator
      if (name !== before.name && (await isTaken(trx, name))) return 'taken' as const
      await trx.updateTable('operators').set({ name, role }).where('id', '=', id).execute()
      await recordChange(trx, change)
      return operator
    })
  }

  rotate(id: string, tokenHash: string, previousUntil: number | null, origin: ChangeOrigin) {
    return this.#withOperator(id, async (trx, before, { token_hash }) => {
      const operator = { ...before, previousUntil }
      await trx
        .updateTable('operators')
        .set({
          token_hash: tokenHash,
          previous_hash: previousUntil === null ? null : token_hash,
          previous_until: toBigint(previousUntil),
        })
        .where('id', '=', id)
        .execute()
      await recordChange(trx, operatorChange('operator.rotated', operator, origin))
      return operator
    })
  }

  async delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    const deleted = await this.#withOperator(id, async (trx, operator) => {
      await trx.deleteFrom('operators').where('id', '=', id).execute()
      await recordChange(trx, operatorChange('operator.deleted', operator, origin))
      return true
    })
    return deleted === true
  }

  #withOperator<T>(
    id: string,
    run: (trx: Database, operator: StoredOperator, row: OperatorsTable) => Promise<T>,
  ): Promise<T | undefined> {
    return this.#alone(async (trx) => {
      const row = await trx.selectFrom('operators').selectAll().where('id', '=', id).executeTakeFirst()
      return row && run(trx, toOperator(row), row)
    })
  }

  /** Runs while no other transaction changes operators, so that a free name stays free. */
  #alone<T>(run: (trx: Database) => Promise<T>): Promise<T> {
    return transact(this.#db, async (trx) => {
      await takeTurn(trx, 'operators')
      return run(trx)
    })
  }
}

async function isTaken(trx: Database, name: string): Promise<boolean> {
  const row = await trx.selectFrom('operators').select('id').where('name', '=', name).executeTakeFirst()
  return row !== undefined
}

function toOperator({ id, name, role, previous_until, created_at }: OperatorsTable): StoredOperator {
  return {
    id,
    name,
    role,
    previousUntil: toNumber(previous_until),
    createdAt: Number(created_at),
  }
}
