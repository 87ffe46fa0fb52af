import { type LimitStore, type Logger, MemoryLimitStore } from 'express-model-gateway'
import type { LineStateStore } from 'express-model-gateway/route'
import type { StoreReading } from 'express-model-gateway/telemetry'
import { loadOptional, missingPackages } from './optional-packages.ts'

/** What may be lost with Redis, or with the process. */
export interface LimitStores {
  readonly limits: LimitStore
  /** Tells whether they answer; absent where nothing can be away. */
  readonly state?: StoreReading
  /** Shares circuits and rests between processes; absent where they are this process's alone. */
  readonly lineStates?: LineStateStore
  /** Resolves once it is known, and logged otherwise, whether they can be reached. */
  readonly tried: Promise<void>
  /** Rejects while they cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}

/**
 * Counts in Redis when there is one, so that limits hold over all processes; else in this process.
 *
 * @throws {ConfigError} if there is a URL and its client is not installed.
 */
export async function openLimitStores(url: string | undefined, logger: Logger): Promise<LimitStores> {
  const nothing = async (): Promise<void> => {}
  if (url === undefined)
    return { limits: new MemoryLimitStore(), tried: nothing(), ping: nothing, close: nothing }
  const module = await loadOptional(() => import('./redis-limits.ts'))
  if (!module) throw missingPackages('REDIS_URL', 'ioredis')
  return module.openRedisLimits(url, logger)
}
