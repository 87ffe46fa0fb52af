import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** An address is refused that only hosts beside the gateway can reach. */
export class PrivateAddress extends Error {
  override readonly name = 'PrivateAddress'
  constructor() {
    super('the address is not a public one')
  }
}

/** Whether an IP address is one of the public internet, IPv4 inside IPv6 read as what it is. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast'
}

/** Whether the host of a URL is an IP address that is not public. Names are judged when they are looked up. */
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
 * `dns.lookup` that answers public addresses only, for connections: those that it answers are the ones that are connected
 * to, so that no second look-up can tell another one.
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
