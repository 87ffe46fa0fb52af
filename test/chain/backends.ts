import { randomUUID } from 'node:crypto'
import { before, describe } from 'node:test'
import { type IdempotencyStore, MemoryIdempotencyStore } from '../../lib/middleware/idempotency/index.ts'
import { type LimitStore, MemoryLimitStore } from '../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../lib/stores/redis/index.ts'
import { openDatabase, SqlIdempotencyStore } from '../../lib/stores/sql/index.ts'
import { temporaryDatabase } from '../stores/sql/support/temporary-database.ts'
import { cleaningUp } from '../support/clean-up.ts'
import type { Mode } from '../support/exchange.ts'
import { STORE_TIMEOUT_MS } from '../support/limited-gateway.ts'
import { startRedis, WITHOUT_REDIS } from '../support/redis-server.ts'

/** The stores of one gateway: nothing is counted in them yet. */
export interface ChainStores {
  readonly limits: LimitStore
  readonly claims: IdempotencyStore
}

/** Chooses the modes of the row with this number. */
type ModesOf = (row: number, modes: readonly Mode[]) => readonly Mode[]

/**
 * Runs a suite on the memory stores in all modes, and with limits in a real Redis and claims in SQLite in one mode after
 * the other: the stores know nothing of protocols and streams.
 */
export function onEveryBackend(
  name: string,
  suite: (fresh: () => ChainStores, modesOf: ModesOf) => void,
): void {
  describe(`${name}, memory`, () => {
    suite(
      () => ({ limits: new MemoryLimitStore(), claims: new MemoryIdempotencyStore() }),
      (_row, modes) => modes,
    )
  })

  describe(`${name}, Redis and SQLite`, { skip: WITHOUT_REDIS }, () => {
    let fresh: (() => ChainStores) | undefined
    const cleanUp = cleaningUp()
    before(async () => {
      const server = await startRedis()
      cleanUp.after(() => server.close())
      const redis = server.client({ enableAutoPipelining: true })
      const { url, remove } = await temporaryDatabase()
      cleanUp.after(remove)
      const db = await openDatabase(url)
      cleanUp.after(() => db.destroy())
      const claims = new SqlIdempotencyStore(db)
      fresh = () => ({
        limits: new RedisLimitStore({
          redis,
          prefix: `test:{${randomUUID()}}`,
          timeoutMs: STORE_TIMEOUT_MS,
        }),
        claims,
      })
    })
    suite(
      () => {
        if (!fresh) throw new Error('the stores are not open yet')
        return fresh()
      },
      (row, modes) => [modes[row % modes.length] as Mode],
    )
  })
}
