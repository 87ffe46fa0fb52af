import proxyAddr from 'proxy-addr'
import { clientAddress } from '../../core/client-address/index.ts'

/**
 * Returns a value for Express's setting `trust proxy` that also recognises proxies whose addresses were written with a port,
 * in brackets, or as IPv4 inside IPv6, as some balancers do. Express alone would take such a proxy for the caller.
 *
 * @param setting true, false, a number of hops, or addresses and CIDR blocks, as Express takes them.
 * @throws TypeError if an address is not valid.
 * @example
 * app.set('trust proxy', trustedProxies(['10.0.0.0/8', 'loopback']))
 */
export function trustedProxies(
  setting: boolean | number | string | readonly string[],
): boolean | number | ((address: string, hop: number) => boolean) {
  if (typeof setting === 'boolean' || typeof setting === 'number') return setting
  const list = typeof setting === 'string' ? setting.split(',') : setting
  const trusts = proxyAddr.compile(list.map((entry) => entry.trim()).filter((entry) => entry !== ''))
  return (address, hop) => trusts(clientAddress(address) ?? address, hop)
}
