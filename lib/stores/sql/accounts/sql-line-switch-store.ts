import { sql } from 'kysely'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import type { LineSwitchStore } from '../../../management/index.ts'
import { lineSwitch, restLift } from '../../../management/lines/line-switch-store.ts'
import { aDatabase, checkDatabase } from '../driver/database.ts'
import { takeTurn } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { recordChange } from './sql-change-log.ts'

/** Options of {@link SqlLineSwitchStore}. */
export interface SqlLineSwitchStoreOptions {
  /**
   * The database for look-ups every few seconds, such as a read-only handle that no write blocks. Defaults to the
   * database itself.
   */
  lookUps?: Database
}

/**
 * A line switch store in a database, for all processes that share it.
 *
 * @example
 * const store = new SqlLineSwitchStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlLineSwitchStore implements LineSwitchStore {
  readonly #db: Database
  readonly #lookUps: Database

  constructor(db: Database, options: SqlLineSwitchStoreOptions = {}) {
    checkDatabase('SqlLineSwitchStore', db)
    checkOptions<SqlLineSwitchStoreOptions>('SqlLineSwitchStore', options, { lookUps: aDatabase })
    this.#db = db
    this.#lookUps = options.lookUps ?? db
  }

  async all(): Promise<ReadonlyMap<string, boolean>> {
    const rows = await this.#lookUps.selectFrom('line_switches').selectAll().execute()
    return new Map(rows.map(({ line, enabled }) => [line, enabled !== 0]))
  }

  async set(line: string, enabled: boolean | null, origin: ChangeOrigin): Promise<void> {
    await transact(this.#db, async (trx) => {
      // Rows are inserted and deleted: there may be none to lock.
      await takeTurn(trx, 'line switches')
      const row = await trx
        .selectFrom('line_switches')
        .select('enabled')
        .where('line', '=', line)
        .executeTakeFirst()
      const before = row ? row.enabled !== 0 : null
      if (before === enabled) return
      if (enabled === null) await trx.deleteFrom('line_switches').where('line', '=', line).execute()
      else
        await trx
          .insertInto('line_switches')
          .values({ line, enabled: Number(enabled) })
          .onConflict((conflict) => conflict.column('line').doUpdateSet({ enabled: Number(enabled) }))
          .execute()
      await recordChange(trx, lineSwitch(line, before, enabled, origin))
    })
  }

  async lifts(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#lookUps.selectFrom('rest_lifts').selectAll().execute()
    return new Map(rows.map(({ line, lifts }) => [line, lifts]))
  }

  async lift(line: string, rests: readonly object[], origin: ChangeOrigin): Promise<void> {
    await transact(this.#db, async (trx) => {
      await trx
        .insertInto('rest_lifts')
        .values({ line, lifts: 1 })
        .onConflict((conflict) => conflict.column('line').doUpdateSet({ lifts: sql`rest_lifts.lifts + 1` }))
        .execute()
      await recordChange(trx, restLift(line, rests, origin))
    })
  }
}
