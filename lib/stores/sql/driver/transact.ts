import { setTimeout as sleep } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Database, Tables } from './tables.ts'

/** Postgres, or a distributed database with its protocol, could not put concurrent transactions in an order: serialization failure, deadlock. */
const CONFLICTS: readonly unknown[] = ['40001', '40P01']

/** Whether the database has undone a transaction because of a concurrent one: repeated, it may succeed. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes((error as { code?: unknown } | null)?.code)
}

const MAX_TRIES = 20
const MAX_PAUSE_MS = 200

/** Repeats an operation of the database that has done nothing because it conflicts with a concurrent one. */
export async function retryConflicts<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      if (tries === MAX_TRIES || !isConflict(error)) throw error
    }
    await sleep(Math.random() * Math.min(MAX_PAUSE_MS, 2 ** tries))
  }
}

/**
 * Runs an operation in a transaction. If that conflicts with a concurrent one, all is done again.
 *
 * @param run changes nothing but the database.
 */
export function transact<T>(db: Database, run: (trx: Transaction<Tables>) => Promise<T>): Promise<T> {
  return retryConflicts(() => db.transaction().execute(run))
}
