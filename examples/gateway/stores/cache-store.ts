import type KeyvRedis from '@keyv/redis'
import type { RedisClientOptions } from '@keyv/redis'
import type { CacheStore } from 'express-model-gateway/cache'
import { loadOptional } from '../config/packages.ts'
import { redisServers } from '../config/redis-url.ts'
import { RETRY_MS, SILENT_MS } from './limit-stores.ts'

/** A quiet connection is asked so often, in milliseconds. */
const PING_MS = 300
/** Most commands that wait for one connection. */
const MAX_WAITING = 10_000

/** The store of answers in Redis. It connects when it is used first. */
export interface RedisCacheStore {
  readonly store: CacheStore
  close(): Promise<void>
}

/**
 * Returns a store of answers in Redis, for all processes; undefined if the package `@keyv/redis` is not installed.
 *
 * @param url without a fault.
 */
export async function openCacheStore(url: string): Promise<RedisCacheStore | undefined> {
  const loaded = await loadOptional(() => import('@keyv/redis'))
  if (!loaded) return undefined
  const adapter = new loaded.default(connectionOf(url), { throwOnErrors: true })
  // The adapter adds the namespace to each key.
  const store = new loaded.Keyv({ store: adapter, namespace: 'gateway:cache', useKeyPrefix: false })
  return { store, close: () => adapter.disconnect(true) }
}

/** Commands fail while there is no connection: a call does not wait for one. */
const CLIENT = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: MAX_WAITING,
  pingInterval: PING_MS,
  socket: { reconnectStrategy: () => RETRY_MS, connectTimeout: 2 * SILENT_MS, socketTimeout: SILENT_MS },
} satisfies RedisClientOptions

/** Returns how to connect to the server, the cluster or the sentinels of a `REDIS_URL`. */
function connectionOf(url: string): ConstructorParameters<typeof KeyvRedis>[0] {
  const servers = redisServers(url)
  if (!servers) return { ...CLIENT, url }
  const { kind, tls, user, password, hosts, name } = servers
  const client = {
    ...CLIENT,
    ...(user && { username: user }),
    ...(password && { password }),
    socket: { ...CLIENT.socket, ...(tls && { tls: true as const }) },
  }
  if (kind === 'cluster') return { rootNodes: hosts.map((socket) => ({ socket })), defaults: client }
  return { name, sentinelRootNodes: [...hosts], nodeClientOptions: client, sentinelClientOptions: client }
}
