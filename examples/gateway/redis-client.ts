import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { errorText } from './error-text.ts'

/** How `REDIS_URL` may begin and what it holds: one server, the nodes of a cluster, or sentinels and their master's name. */
const REDIS_URL =
  /^redis(?<tls>s?)(?:\+(?<kind>cluster|sentinel))?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^/?#@]+)(?:\/(?<name>[^/?#]*))?$/

const HOST = /^(?:\[(?<ipv6>[\da-f:.]+)\]|(?<host>[^:[\]]+))(?::(?<port>\d{1,5}))?$/i

const OPTIONS = {
  // A master that became a replica may keep its connections; whoever stands at its address now takes writes.
  reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
} satisfies RedisOptions

/** Returns what is wrong with a `REDIS_URL`, without the URL, which may hold a password; undefined if it can be used. */
export function redisUrlFault(url: string): string | undefined {
  if (/^rediss?:\/\/./.test(url)) return undefined
  const { kind, hosts = '', name } = REDIS_URL.exec(url)?.groups ?? {}
  if (!kind || !hosts.split(',').every((host) => HOST.test(host)))
    return 'must be "redis://…", "rediss://…", "redis+cluster://host:port,host:port" or "redis+sentinel://host:port,host:port/name"'
  if (/%(?![\da-f]{2})/i.test(url)) return 'has a "%" without two hexadecimal digits behind it'
  return kind === 'sentinel' && !name
    ? 'needs the name of the master: "redis+sentinel://host:port/name"'
    : undefined
}

/**
 * Creates the client for a `REDIS_URL` without a {@link redisUrlFault}: `redis://`, `redis+cluster://h1:p1,h2:p2` or
 * `redis+sentinel://h1:p1,h2:p2/name`, each with `rediss` for TLS. User and password are those of Redis and, where there
 * are any, of the sentinels.
 */
export function redisClient(url: string): Redis | Cluster {
  const { tls, kind, user = '', password = '', hosts = '', name = '' } = REDIS_URL.exec(url)?.groups ?? {}
  if (!kind) return new Redis(url, OPTIONS)
  const username = decodeURIComponent(user)
  const secret = decodeURIComponent(password)
  const options = {
    ...OPTIONS,
    ...(user && { username }),
    ...(password && { password: secret }),
    ...(tls && { tls: {} }),
  }
  if (kind === 'cluster') return new Cluster(hostsOf(hosts, 6379), { redisOptions: options })
  return new Redis({
    ...options,
    ...(user && { sentinelUsername: username }),
    ...(password && { sentinelPassword: secret }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    sentinels: hostsOf(hosts, 26_379),
    name: decodeURIComponent(name),
  })
}

function hostsOf(hosts: string, usualPort: number): { host: string; port: number }[] {
  return hosts.split(',').map((text) => {
    const { ipv6, host = '', port } = HOST.exec(text)?.groups ?? {}
    return { host: ipv6 ?? host, port: port === undefined ? usualPort : Number(port) }
  })
}

/** How long a start waits for a Redis that neither answers nor refuses, in milliseconds. */
const CONNECT_MS = 2000

/** What is known of the connection of a client. */
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
