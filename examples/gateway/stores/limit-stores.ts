import type { LimitStore, Logger } from 'express-model-gateway'
import type { LoadedConfig } from 'express-model-gateway/config'
import { MemoryLimitStore } from 'express-model-gateway/rate-limit'
import type { LineStateStore } from 'express-model-gateway/route'
import type { StoreReading } from 'express-model-gateway/telemetry'
import type * as Ioredis from 'ioredis'
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { loadOptional, missingPackages } from '../config/packages.ts'
import { type RedisServers, redisServers } from '../config/redis-url.ts'
import { errorText } from '../errors.ts'
import { serverLog } from '../telemetry/server-log.ts'

/** The stores whose content may be lost with Redis, or with the process. */
export interface LimitStores {
  readonly limits: LimitStore
  /** Reports whether they answer; absent where nothing can be away. */
  readonly state?: StoreReading
  /** Shares circuits and rests between processes; absent where they are this process's alone. */
  readonly lineStates?: LineStateStore
  /** For the users of these: an outage of Redis is one line when it begins and one when it ends. */
  readonly limitsLogger?: Logger
  /** Resolves once they were reached, or a failure to reach them was logged. */
  readonly tried: Promise<void>
  /** Rejects while they cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}

const EFFECTS: Readonly<Record<LoadedConfig['onStoreError'], string>> = {
  local:
    'calls are served; each process counts limits, and has circuits and rests, by itself; no answer comes from a cache',
  refuse:
    'calls with limits are refused with internal_error; each process has circuits and rests of its own; no answer comes from a cache',
}

/**
 * Counts in Redis when there is one, so that limits hold over all processes; else in this process.
 *
 * @param url without a fault.
 * @param onStoreError the policy for limited calls while Redis is away. Defaults to `local`.
 * @throws {ConfigError} if there is a URL and its client is not installed.
 */
export async function openLimitStores(
  url: string | undefined,
  logger: Logger,
  onStoreError: LoadedConfig['onStoreError'] = 'local',
): Promise<LimitStores> {
  if (url === undefined) return inProcess(new MemoryLimitStore())
  const packages = await loadOptional(() =>
    Promise.all([import('ioredis'), import('express-model-gateway/redis')]),
  )
  if (!packages) throw missingPackages('REDIS_URL', 'ioredis')
  const [ioredis, { RedisLimitStore, RedisLineStateStore }] = packages
  const redis = redisClient(ioredis, url)
  const unfollow = followSentinels(ioredis, url, redis)
  const connection = watchConnection(redis)
  const address = url.replace(/\/\/[^/]*@/, '//').replace(/[?#].*$/, '')
  // The store reports when Redis goes away and when it is back; the reason is the connection's.
  const error: Logger['error'] = (fields, message) => {
    const { fault: reason } = connection
    logger.error({ ...fields, address, ...(reason !== undefined && { reason }) }, message)
  }
  let isClosed = false
  const joined = serverLog({
    server: 'redis',
    effect: EFFECTS[onStoreError],
    ask: () => limits.ping(),
    isClosed: () => isClosed,
    logger: { ...logger, error },
  })
  const limits = new RedisLimitStore({ redis, logger: joined })
  return {
    limits,
    state: limits,
    lineStates: new RedisLineStateStore({ redis }),
    limitsLogger: joined,
    // The store logs that it is away.
    tried: connection.tried.then(() => limits.ping()).catch(() => {}),
    ping: () => limits.ping(),
    async close() {
      isClosed = true
      await limits.close()
      unfollow()
      redis.disconnect()
    },
  }
}

/** Returns the stores of a limit store that needs no connection. */
export function inProcess(limits: LimitStore, state?: StoreReading): LimitStores {
  const nothing = async (): Promise<void> => {}
  return { limits, ...(state && { state }), tried: nothing(), ping: nothing, close: nothing }
}

/** How long to wait between two tries to connect, at most, in milliseconds. ioredis would come to wait for five seconds. */
export const RETRY_MS = 250
/**
 * A connection on which nothing is answered for this long is given up, in milliseconds. ioredis would wait for as long as it
 * stands: for ever, if its server hangs and another has taken its place.
 */
export const SILENT_MS = 1000

const retryStrategy = (times: number): number => Math.min(50 * times, RETRY_MS)

const OPTIONS = {
  retryStrategy,
  socketTimeout: SILENT_MS,
  connectTimeout: 2 * SILENT_MS,
  // How long to wait at most before asking again a server that still reads its data.
  maxLoadingRetryTime: RETRY_MS,
  // A master that became a replica may keep its connections; the server at its address now takes writes.
  reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
} satisfies RedisOptions

/** Creates the client for a `REDIS_URL`. User and password are those of Redis and, where there are any, of the sentinels. */
function redisClient(
  { Redis, Cluster }: Pick<typeof Ioredis, 'Redis' | 'Cluster'>,
  url: string,
): Redis | Cluster {
  const servers = redisServers(url)
  if (!servers) return new Redis(url, OPTIONS)
  const { kind, tls, user, password, hosts, name } = servers
  const options = { ...OPTIONS, ...accessTo(servers) }
  if (kind === 'cluster')
    return new Cluster([...hosts], { redisOptions: options, clusterRetryStrategy: retryStrategy })
  return new Redis({
    ...options,
    ...(user && { sentinelUsername: user }),
    ...(password && { sentinelPassword: password }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    sentinels: [...hosts],
    sentinelRetryStrategy: retryStrategy,
    name,
  })
}

/**
 * Has the client connect anew when a sentinel reports another master. The former one may go on serving for ten seconds, and what
 * it is told meanwhile is lost. ioredis's own `failoverDetector` would print each try to reach a sentinel that is away.
 *
 * @returns a function that ends this.
 */
function followSentinels(
  { Redis }: Pick<typeof Ioredis, 'Redis'>,
  url: string,
  redis: Redis | Cluster,
): () => void {
  const servers = redisServers(url)
  if (servers?.kind !== 'sentinel') return () => {}
  const { hosts, name } = servers
  const connectAnew = () => redis.disconnect(true)
  const sentinels = hosts.map((host) => {
    const sentinel = new Redis({
      ...host,
      ...accessTo(servers),
      retryStrategy,
      connectTimeout: OPTIONS.connectTimeout,
      // A sentinel whose host is gone says nothing more, and a subscriber sends nothing.
      keepAlive: 10_000,
      // Its user may be allowed no INFO, of which ioredis would print a warning.
      enableReadyCheck: false,
      autoResubscribe: false,
    })
    sentinel.on('error', () => {})
    sentinel.on('ready', () => {
      sentinel.subscribe('+switch-master').catch(() => {})
    })
    // Each sentinel reports it, some seconds apart: until all have, the client may be sent to the former master again.
    sentinel.on('message', (_channel: string, message: string) => {
      if (!message.startsWith(`${name} `)) return
      // While a client of ioredis looks for its master, this would end it for good.
      if (redis.status === 'ready') connectAnew()
      else redis.off('ready', connectAnew).once('ready', connectAnew)
    })
    return sentinel
  })
  return () => {
    redis.off('ready', connectAnew)
    for (const sentinel of sentinels) sentinel.disconnect()
  }
}

/** Returns the login and the TLS that a server wants. */
function accessTo({ user, password, tls }: RedisServers) {
  return {
    ...(user && { username: user }),
    ...(password && { password }),
    ...(tls && { tls: {} }),
  }
}

/** How long a start waits for a Redis that neither answers nor refuses, in milliseconds. */
const CONNECT_MS = 2000

/** Watches the connection of a client. Without a listener, ioredis would print its errors. */
function watchConnection(redis: Redis | Cluster) {
  const { promise: tried, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, CONNECT_MS)
  const connection = {
    /** Why it is down; undefined while it is not. */
    fault: undefined as string | undefined,
    /** Resolves once the first try to connect has succeeded or failed, or takes long. */
    tried: tried.then(() => clearTimeout(timer)),
  }
  redis.on('error', (error: Error & { lastNodeError?: Error }) => {
    connection.fault = errorText(error.lastNodeError ?? error)
    resolve()
  })
  redis.on('ready', () => {
    connection.fault = undefined
    resolve()
  })
  return connection
}
