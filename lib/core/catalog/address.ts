import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Whether a text is an IP address or a CIDR block. Of IPv4 all four numbers: `10/8` and `010.0.0.1` mean other addresses to C. */
export function isAddressOrBlock(text: string): boolean {
  const [address = ''] = text.split('/')
  return isIP(address) !== 0 && (ipaddr.isValid(text) || ipaddr.isValidCIDR(text))
}
