import ipaddr from 'ipaddr.js'

/** Whether a text is an IP address or a CIDR block. */
export function isAddressOrBlock(text: string): boolean {
  return ipaddr.isValid(text) || ipaddr.isValidCIDR(text)
}
