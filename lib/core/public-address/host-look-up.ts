import dns, { type LookupAddress } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { within } from '../timing/index.ts'

/** The time for one question to one server, the times it is asked, and the time for all questions. */
const QUESTION = { timeout: 1500, tries: 2 }
const LOOK_UP_MS = 6000
/** How much longer than its IPv4 addresses the IPv6 ones of a name are waited for. Some servers never answer that question. */
const IPV6_WAIT_MS = 300
const MAX_SEARCHED = 6
const HOSTS = '/etc/hosts'
const RESOLVER = '/etc/resolv.conf'
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]
const serversAtStart = dns.getServers().join()

/**
 * Returns the addresses of a name, from the file of hosts or from DNS with its search domains. Unlike `dns.lookup`, it holds
 * no thread of the process while a server of names hangs. The owner of a name can make its server hang.
 *
 * @throws an error with a `code`, such as ENOTFOUND or ETIMEOUT.
 */
export async function lookUpHost(hostname: string): Promise<readonly LookupAddress[]> {
  const family = isIP(hostname)
  if (family !== 0) return [{ address: hostname, family }]
  const name = hostname.toLowerCase().replace(/\.$/, '')
  const known = hostsIn(await textOf(HOSTS), name)
  if (known.length > 0) return known
  if (/(^|\.)localhost$/.test(name)) return LOOPBACK
  const names = hostname.endsWith('.') ? [name] : searchedNames(await textOf(RESOLVER), name)
  return ask(names)
}

/** Returns the addresses that a file of hosts has for a name. */
export function hostsIn(text: string, name: string): LookupAddress[] {
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    return family !== 0 && names.some((known) => known.toLowerCase() === name) ? [{ address, family }] : []
  })
}

/** Returns the names to ask for in turn, by the `search` and `ndots` of a `resolv.conf`. */
export function searchedNames(text: string, name: string): string[] {
  const [, domains = ''] = [...text.matchAll(/^\s*(?:search|domain)\s+(.*)$/gm)].at(-1) ?? []
  const ndots = Number(/^\s*options\s.*\bndots:(\d+)/m.exec(text)?.[1] ?? 1)
  const searched = domains
    .split(/\s+/)
    .filter((domain) => /^[^.#;]/.test(domain))
    .slice(0, MAX_SEARCHED)
    .map((domain) => `${name}.${domain}`)
  return name.split('.').length > ndots ? [name, ...searched] : [...searched, name]
}

async function ask(names: readonly string[]): Promise<readonly LookupAddress[]> {
  // A new one reads the servers of the system again, and is cancelled alone.
  const resolver = new dns.promises.Resolver(QUESTION)
  const servers = dns.getServers()
  // The process has named servers of its own.
  if (servers.join() !== serversAtStart) resolver.setServers(servers)
  const late = setTimeout(() => resolver.cancel(), LOOK_UP_MS)
  try {
    let none: unknown
    for (const name of names) {
      const [four, six] = await addressesBy(resolver, name)
      const found = [...addressesOf(four, 4), ...addressesOf(six, 6)]
      if (found.length > 0) return found
      none = [four, six].map(reasonOf).find((reason) => !isAbsent(reason)) ?? reasonOf(four)
      if (!isAbsent(none)) break
    }
    throw none
  } finally {
    clearTimeout(late)
    resolver.cancel()
  }
}

type Answer = PromiseSettledResult<string[]>

async function addressesBy(
  resolver: dns.promises.Resolver,
  name: string,
): Promise<[four: Answer, six: Answer]> {
  const askedForSix = Promise.allSettled([resolver.resolve6(name)])
  const [four] = await Promise.allSettled([resolver.resolve4(name)])
  const noneYet = (): [Answer] => [{ status: 'fulfilled', value: [] }]
  const answered = four.status === 'fulfilled' ? within(IPV6_WAIT_MS, askedForSix, noneYet) : askedForSix
  return [four, (await answered)[0]]
}

function addressesOf(settled: Answer, family: 4 | 6): LookupAddress[] {
  return settled.status === 'fulfilled' ? settled.value.map((address) => ({ address, family })) : []
}

function reasonOf(settled: Answer): unknown {
  const reason = settled.status === 'rejected' ? settled.reason : undefined
  // Only the end of the time cancels.
  return reason?.code === 'ECANCELLED' ? Object.assign(reason, { code: 'ETIMEOUT' }) : reason
}

/** Whether a server has said that there is no such name, or no such address of it. */
function isAbsent(reason: unknown): boolean {
  return ['ENOTFOUND', 'ENODATA'].includes(String((reason as { code?: unknown } | undefined)?.code))
}

async function textOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '')
}
