import type { Request } from 'express'
import ipaddr from 'ipaddr.js'
import { aWholeNumber, checkOptions } from '../../core/options/index.ts'

/** Options of {@link ipSubject}. */
export interface IpSubjectOptions {
  /**
   * The length of the prefix of an IPv6 address whose addresses count as one: who has one has them all. 128 counts each by
   * itself. Defaults to 56, the usual size of a home connection.
   */
  ipv6Prefix?: number
}

/**
 * Returns a function for the address of a request, for `by` of a level. An IPv6 address counts with its network, an
 * IPv4 address in IPv6 form as IPv4. The address is `req.ip`: set Express's `trust proxy` if there is a proxy in front.
 *
 * @throws TypeError when an option is unusable.
 * @example
 * app.use(rateLimit({ levels: [{ name: 'ip', by: ipSubject(), rpm: 60 }] }))
 */
export function ipSubject(options: IpSubjectOptions = {}): (req: Request) => string | undefined {
  checkOptions('ipSubject', options, {
    ipv6Prefix: aWholeNumber('a whole number of bits from 1 to 128', 1, 128),
  })
  const { ipv6Prefix = 56 } = options
  return function subjectOf({ ip }: Request): string | undefined {
    // IPv4, or a name that a trusted proxy has sent.
    if (ip === undefined || !ip.includes(':') || !ipaddr.IPv6.isValid(ip)) return ip
    const address = ipaddr.IPv6.parse(ip)
    if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString()
    const bytes = address.toByteArray().map((byte, i) => byte & maskOf(ipv6Prefix - 8 * i))
    const network = new ipaddr.IPv6(bytes).toString()
    return ipv6Prefix === 128 ? network : `${network}/${ipv6Prefix}`
  }
}

/** Returns the mask of a byte of which the first bits belong to the network. */
function maskOf(bits: number): number {
  return bits >= 8 ? 0xff : bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff
}
