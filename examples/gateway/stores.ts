import {
  type KeyDirectory,
  type LimitStore,
  type Logger,
  MemoryCallStore,
  MemoryIdempotencyStore,
  MemoryLimitStore,
  memoryKeyDirectory,
} from 'express-model-gateway'
import type { CallStore } from 'express-model-gateway/call-log'
import type { GatewayConfig } from 'express-model-gateway/catalog'
import type { IdempotencyStore } from 'express-model-gateway/idempotency'
import { RedisLimitStore } from 'express-model-gateway/redis'
import {
  openDatabase,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlKeyDirectory,
  seedAccountsAndKeys,
} from 'express-model-gateway/sql'
import { Redis } from 'ioredis'

/** What has to last. */
export interface DurableStores {
  readonly keys: KeyDirectory
  readonly calls: CallStore
  /** In the database even where there is a Redis: whether a call ran is as durable as its record. */
  readonly claims: IdempotencyStore
  /** Rejects while the database cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** What may be lost with Redis, or with the process. */
export interface LimitStores {
  readonly limits: LimitStore
  /** Whether they are away, as far as is known. */
  away(): boolean
  close(): void
}

/** Opens the stores that DATABASE_URL names and puts the config's accounts and keys into them. */
export async function openDurableStores(
  url: string,
  config: GatewayConfig,
  logger: Logger,
): Promise<DurableStores> {
  if (url === 'memory:') {
    const nothing = async (): Promise<void> => {}
    return {
      keys: memoryKeyDirectory(config),
      calls: new MemoryCallStore(),
      claims: new MemoryIdempotencyStore(),
      ping: nothing,
      close: nothing,
    }
  }
  const db = await openDatabase(url, { logger })
  await seedAccountsAndKeys(db, config, { logger })
  // Searches of the call log may be long; with a handle of their own they hold up no write.
  const reader = await openDatabase(url, { logger, readOnly: true })
  return {
    keys: new SqlKeyDirectory(db),
    calls: new SqlCallStore(db, { searches: reader }),
    claims: new SqlIdempotencyStore(db),
    async ping() {
      await db.selectFrom('seeds').select('id').limit(1).execute()
    },
    async close() {
      await reader.destroy()
      await db.destroy()
    },
  }
}

/** Counts in Redis when there is one, so that limits hold over all processes; else in this process. */
export function openLimitStores(url: string | undefined, logger: Logger): LimitStores {
  if (url === undefined) return { limits: new MemoryLimitStore(), away: () => false, close: () => {} }
  const redis = new Redis(url, { enableAutoPipelining: true })
  // The store says when Redis goes away and when it is back; each try to reconnect need not be told.
  redis.on('error', () => {})
  const limits = new RedisLimitStore({ redis, logger })
  return { limits, away: () => limits.away, close: () => redis.disconnect() }
}
