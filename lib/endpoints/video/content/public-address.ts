import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Thrown if a name resolves to an address that is not public. */
export class PrivateAddress extends Error {
  override readonly name = 'PrivateAddress'
  constructor() {
    super('the address is not a public one')
  }
}

/** Whether an IP address is public. An IPv4 address inside an IPv6 address counts as the IPv4 address. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast'
}

/** Whether the host of a URL is an IP address that is not public. Names are checked when they are looked up. */
export function isPrivateHost(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  return isIP(address) !== 0 && !isPublicAddress(address)
}

type LookupDone = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void

/**
 * A `dns.lookup` that returns public addresses only. The connection uses exactly these addresses, so that no second
 * look-up can return another one.
 */
export function lookupPublic(hostname: string, options: LookupOptions, done: LookupDone): void {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const first = addresses?.[0]
    if (error || !first) done(error ?? new PrivateAddress(), '')
    else if (!addresses.every(({ address }) => isPublicAddress(address))) done(new PrivateAddress(), '')
    else if (options.all) done(null, addresses)
    else done(null, first.address, first.family)
  })
}
