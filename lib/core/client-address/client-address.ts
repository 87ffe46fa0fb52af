import { isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The longest text that is read: an address with brackets, a zone and a port. A proxy may send any text. */
const MAX_LENGTH = 100

/** The prefix under which translators embed IPv4 addresses (RFC 6052, section 2.1). */
const [TRANSLATED, TRANSLATED_BITS] = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/**
 * Returns the address in what a socket or a proxy names as the caller: `203.0.113.7:51234`, `[2001:db8::1]:443`,
 * `fe80::1%eth0`, `::ffff:203.0.113.7`. It has neither port, brackets nor zone. An IPv4 address that is mapped or
 * embedded in an IPv6 address is returned as IPv4, and any other IPv6 address in its canonical form (RFC 5952), so that
 * one caller has one text.
 *
 * @returns undefined if the text is not an address.
 */
export function clientAddress(text: string): string | undefined {
  if (isIP(text) === 4) return text
  if (text.length > MAX_LENGTH) return undefined
  const address = withoutPort(text.trim()).replace(/%.*$/, '')
  if (isIP(address) === 0) return undefined
  return isIPv6(address) ? canonical(address) : address
}

function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? []
  return bracketed ?? text.replace(/^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/, '$1')
}

function canonical(text: string): string {
  const address = ipaddr.IPv6.parse(text)
  // ipaddr.js reads the IPv4-compatible form ::203.0.113.7 as a mapped address.
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString()
  if (!address.match(TRANSLATED, TRANSLATED_BITS)) return address.toRFC5952String()
  return new ipaddr.IPv4(address.toByteArray().slice(12)).toString()
}
