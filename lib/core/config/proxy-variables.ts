import type { Variables } from './secrets.ts'

/**
 * Returns the proxy that the environment names for an address, as curl reads it: `HTTPS_PROXY` for https, unless `NO_PROXY`
 * names the host, one of its domains, or `*`.
 */
export function proxyByVariables({ protocol, hostname, port }: URL, env: Variables): string | undefined {
  const proxy = env.HTTPS_PROXY || env.https_proxy
  if (!proxy || protocol !== 'https:') return undefined
  const host = hostname.replace(/[[\]]/g, '')
  const exceptions = (env.NO_PROXY || env.no_proxy || '').toLowerCase().split(/[\s,]+/)
  const isException = exceptions.some((entry) => {
    const [, name = '', only] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry) ?? []
    if (entry === '*' || entry === host) return true
    if (name === '' || (only !== undefined && only !== (port || '443'))) return false
    return host === name || host.endsWith(`.${name}`)
  })
  return isException ? undefined : withScheme(proxy)
}

/** Returns what is wrong with the proxy that the environment names, without it, which may hold a password. */
export function proxyVariableFaults(env: Variables): string[] {
  const name = env.HTTPS_PROXY ? 'HTTPS_PROXY' : 'https_proxy'
  const proxy = env[name]
  if (!proxy || /^https?:/.test(URL.parse(withScheme(proxy))?.protocol ?? '')) return []
  return [`${name}: must be the http(s) URL of a proxy`]
}

/** As curl does, a proxy without a scheme is one over http. */
function withScheme(proxy: string): string {
  return proxy.includes('://') ? proxy : `http://${proxy}`
}
