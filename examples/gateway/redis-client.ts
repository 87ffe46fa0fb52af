import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { errorText } from './error-text.ts'
import { redisServers } from './redis-url.ts'

/** How long to wait between two tries to connect, at most, in milliseconds. ioredis would come to wait for five seconds. */
const RETRY_MS = 250
/**
 * A connection on which nothing is answered for this long is given up, in milliseconds. ioredis would wait for as long as it
 * stands: for ever, if its server hangs and another has taken its place.
 */
const SILENT_MS = 1000

const retryStrategy = (times: number): number => Math.min(50 * times, RETRY_MS)

const OPTIONS = {
  retryStrategy,
  socketTimeout: SILENT_MS,
  connectTimeout: 2 * SILENT_MS,
  // How long to wait at most before asking again a server that still reads its data.
  maxLoadingRetryTime: RETRY_MS,
  // A master that became a replica may keep its connections; whoever stands at its address now takes writes.
  reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
} satisfies RedisOptions

/**
 * Creates the client for a `REDIS_URL` without a {@link redisUrlFault}: `redis://`, `redis+cluster://h1:p1,h2:p2` or
 * `redis+sentinel://h1:p1,h2:p2/name`, each with `rediss` for TLS. User and password are those of Redis and, where there
 * are any, of the sentinels.
 */
export function redisClient(url: string): Redis | Cluster {
  const servers = redisServers(url)
  if (!servers) return new Redis(url, OPTIONS)
  const { kind, tls, user, password, hosts, name } = servers
  const options = {
    ...OPTIONS,
    ...(user && { username: user }),
    ...(password && { password }),
    ...(tls && { tls: {} }),
  }
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

/** How long a start waits for a Redis that neither answers nor refuses, in milliseconds. */
const CONNECT_MS = 2000

export interface RedisConnection {
  /** Where it leads to, without the user and the password. */
  readonly address: string
  /** Why it is down; undefined while it is not. */
  readonly fault: string | undefined
  /** Resolves once the first try to connect has succeeded or failed, or takes long. */
  readonly tried: Promise<void>
}

/** Watches the connection of a client. Without a listener, ioredis would print its errors. */
export function watchConnection(redis: Redis | Cluster, url: string): RedisConnection {
  let fault: string | undefined
  const { promise: tried, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, CONNECT_MS)
  const end = (): void => {
    clearTimeout(timer)
    resolve()
  }
  redis.on('error', (error: Error & { lastNodeError?: Error }) => {
    fault = errorText(error.lastNodeError ?? error)
    end()
  })
  redis.on('ready', () => {
    fault = undefined
    end()
  })
  return {
    address: url.replace(/\/\/[^/]*@/, '//').replace(/[?#].*$/, ''),
    get fault() {
      return fault
    },
    tried,
  }
}
