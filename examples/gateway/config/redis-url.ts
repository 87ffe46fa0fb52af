/** How `REDIS_URL` may begin and what it holds: one server, the nodes of a cluster, or sentinels and their master's name. */
const REDIS_URL =
  /^redis(?<tls>s?)(?:\+(?<kind>cluster|sentinel))?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^/?#@]+)(?:\/(?<name>[^/?#]*))?$/

const HOST = /^(?:\[(?<ipv6>[\da-f:.]+)\]|(?<host>[^:[\]]+))(?::(?<port>\d{1,5}))?$/i

export const REDIS_URL_FORMS =
  'must be "redis://…", "rediss://…", "redis+cluster://host:port,host:port" or "redis+sentinel://host:port,host:port/name"'

/** Returns what is wrong with a `REDIS_URL`, without the URL, which may hold a password; undefined if it can be used. */
export function redisUrlFault(url: string): string | undefined {
  if (/^rediss?:\/\/./.test(url)) return serverFault(url)
  const { kind, hosts = '', name } = REDIS_URL.exec(url)?.groups ?? {}
  if (!kind || !hosts.split(',').every((host) => HOST.test(host))) return REDIS_URL_FORMS
  if (!isEncoded(url)) return NOT_ENCODED
  if (kind === 'cluster' && name) return 'must end behind the hosts: a cluster has no databases with numbers'
  return kind === 'sentinel' && !name
    ? 'needs the name of the master: "redis+sentinel://host:port/name"'
    : undefined
}

const NOT_ENCODED =
  'must be a URL, in whose user and password "%", "#", "/", "?" and "@" are percent-encoded, such as "%23"'

function serverFault(url: string): string | undefined {
  const parsed = URL.parse(url)
  if (!parsed || !isEncoded(url)) return NOT_ENCODED
  if (/^(\/\d*)?$/.test(parsed.pathname)) return undefined
  return 'must have nothing but the number of a database behind its host, such as "redis://host:6379/1"'
}

function isEncoded(url: string): boolean {
  try {
    decodeURIComponent(url)
    return true
  } catch {
    return false
  }
}

/** The parts of a `REDIS_URL` of several servers. */
export interface RedisServers {
  readonly kind: 'cluster' | 'sentinel'
  readonly tls: boolean
  readonly user: string
  readonly password: string
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  /** Of the master, for sentinels. */
  readonly name: string
}

/** Reads a `REDIS_URL` without a {@link redisUrlFault}; undefined for the URL of a single server. */
export function redisServers(url: string): RedisServers | undefined {
  const { tls, kind, user = '', password = '', hosts = '', name = '' } = REDIS_URL.exec(url)?.groups ?? {}
  if (kind !== 'cluster' && kind !== 'sentinel') return undefined
  return {
    kind,
    tls: Boolean(tls),
    user: decodeURIComponent(user),
    password: decodeURIComponent(password),
    hosts: hostsOf(hosts, kind === 'cluster' ? 6379 : 26_379),
    name: decodeURIComponent(name),
  }
}

function hostsOf(hosts: string, usualPort: number): { host: string; port: number }[] {
  return hosts.split(',').map((text) => {
    const { ipv6, host = '', port } = HOST.exec(text)?.groups ?? {}
    return { host: ipv6 ?? host, port: port === undefined ? usualPort : Number(port) }
  })
}
