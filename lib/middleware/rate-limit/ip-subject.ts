import type { Request } from 'express'
import { clientAddress, networkOf } from '../../core/client-address/index.ts'
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
 * Returns a function for the address of a request, for `by` of a level. An IPv6 address counts with its network, and an
 * IPv4 address in IPv6 form as IPv4. Ports and zones do not count. The address is `req.ip`: set Express's `trust proxy` if
 * there is a proxy in front. Texts of the proxy that are not an address count as one.
 *
 * @throws TypeError when an option is unusable.
 * @example
 * app.use(rateLimit({ levels: [{ name: 'ip', by: ipSubject(), rpm: 60 }] }))
 */
export function ipSubject(options: IpSubjectOptions = {}): (req: Request) => string | undefined {
  checkOptions('ipSubject', options, {
    ipv6Prefix: aWholeNumber('a whole number of bits from 1 to 128', 1, 128),
  })
  const { ipv6Prefix } = options
  return function subjectOf({ ip }: Request): string | undefined {
    if (ip === undefined) return undefined
    const address = clientAddress(ip)
    // A proxy may have sent any text. If each counted by itself, a caller could have as many windows as it likes.
    return address === undefined ? 'unknown' : networkOf(address, ipv6Prefix)
  }
}
