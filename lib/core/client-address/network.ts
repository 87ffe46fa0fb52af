import ipaddr from 'ipaddr.js'

/** The usual size of a home connection: a caller that has one of its addresses has them all. */
const HOME_BITS = 56

/**
 * Returns the network that an IPv6 address belongs to, such as `2001:db8:1:200::/56`. An IPv4 address in IPv6 form is
 * returned as IPv4; every other text is returned as it is.
 */
export function networkOf(address: string, ipv6Prefix: number = HOME_BITS): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  const bytes = parsed.toByteArray().map((byte, i) => byte & maskOf(ipv6Prefix - 8 * i))
  const network = new ipaddr.IPv6(bytes).toString()
  return ipv6Prefix === 128 ? network : `${network}/${ipv6Prefix}`
}

/** Returns the mask of a byte of which the first bits belong to the network. */
function maskOf(bits: number): number {
  return bits >= 8 ? 0xff : bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff
}
