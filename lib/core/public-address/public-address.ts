import { promises as dns, type LookupAddress, type LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { lookUpHost } from './host-look-up.ts'

/** Thrown if a name resolves to an address that is not public. */
export class PrivateAddress extends Error {
  override readonly name = 'PrivateAddress'
  constructor() {
    super('the address is not a public one')
  }
}

/**
 * Whether an IP address is public. An IPv4-mapped address (`::ffff:1.2.3.4`), which is how sockets write IPv4, counts as
 * its IPv4 address. Every other IPv6 address that embeds an IPv4 address is not public: a translator or a tunnel would
 * carry the connection to that address, which is unchecked.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  if (parsed instanceof ipaddr.IPv6) return parsed.match(GLOBAL, GLOBAL_BITS) && !isIsatap(parsed)
  // ipaddr.js reads the IPv4-compatible ::1.2.3.4 as if it were mapped.
  return !address.includes(':') || /ffff:/i.test(address)
}

/** The only block of IPv6 that is assigned to the public. */
const [GLOBAL, GLOBAL_BITS] = ipaddr.IPv6.parseCIDR('2000::/3')

/** Whether the interface identifier is one of ISATAP, which ends with an IPv4 address. It may have any prefix. */
function isIsatap({ parts }: ipaddr.IPv6): boolean {
  return parts[5] === 0x5efe && ((parts[4] as number) & ~0x0200) === 0
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

/** The errors of a name that no DNS server knows, or of a system without one. The system may know the name from elsewhere. */
const UNKNOWN = ['ENOTFOUND', 'EBADNAME', 'ECONNREFUSED']

/**
 * The `lookup` of a connection. Neither holds a thread while a server of names hangs. The connection uses exactly the
 * addresses that it returns.
 */
export function lookupAny(hostname: string, options: LookupOptions, done: LookupDone): void {
  const found = lookUpHost(hostname).catch((error) => {
    if (!UNKNOWN.includes(error.code)) throw error
    return dns.lookup(hostname, { all: true })
  })
  answer(found, options, done)
}

/** {@link lookupAny} for names all of whose addresses are public. No second look-up can return another address. */
export function lookupPublic(hostname: string, options: LookupOptions, done: LookupDone): void {
  const found = lookUpHost(hostname).then((addresses) => {
    if (!addresses.every(({ address }) => isPublicAddress(address))) throw new PrivateAddress()
    return addresses
  })
  answer(found, options, done)
}

function answer(
  found: Promise<readonly LookupAddress[]>,
  { all, family }: LookupOptions,
  done: LookupDone,
): void {
  found.then(
    (addresses) => {
      const wanted = addresses.filter((one) => !family || one.family === Number(String(family).at(-1)))
      const [first] = wanted
      if (!first) done(Object.assign(new Error('the name has no such address'), { code: 'ENOTFOUND' }), '')
      else if (all) done(null, wanted)
      else done(null, first.address, first.family)
    },
    (error) => done(error, ''),
  )
}
