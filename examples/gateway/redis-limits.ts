import type { Logger } from 'express-model-gateway'
import { RedisLimitStore, RedisLineStateStore } from 'express-model-gateway/redis'
import { redisClient, watchConnection } from './redis-client.ts'

/** Opens what is kept in the Redis of a URL without a fault. */
export function openRedisLimits(url: string, logger: Logger) {
  const redis = redisClient(url)
  const connection = watchConnection(redis, url)
  // The store says when Redis goes away and when it is back; each try to reconnect need not be told.
  const error: Logger['error'] = (fields, message) => {
    const { address, fault } = connection
    logger.error({ ...fields, address, ...(fault !== undefined && { reason: fault }) }, message)
  }
  const limits = new RedisLimitStore({ redis, logger: { ...logger, error } })
  return {
    limits,
    state: limits,
    lineStates: new RedisLineStateStore({ redis }),
    // The store logs that it is away.
    tried: connection.tried.then(() => limits.ping()).catch(() => {}),
    ping: () => limits.ping(),
    async close() {
      await limits.close()
      redis.disconnect()
    },
  }
}
