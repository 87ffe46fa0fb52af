import ipaddr from 'ipaddr.js'

type Address = ReturnType<typeof ipaddr.process>
type Block = [Address, number]

/**
 * Compiles addresses and CIDR blocks into a test. An IPv4-mapped IPv6 address matches as its IPv4 address.
 *
 * @throws TypeError naming the entry that is neither an address nor a block.
 */
export function compileIpAllowList(entries: readonly string[]): (ip: string | null) => boolean {
  const blocks = entries.map(parseBlock)
  return (ip) => {
    if (ip === null || !ipaddr.isValid(ip)) return false
    const address = ipaddr.process(ip)
    return blocks.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
  }
}

function parseBlock(entry: string): Block {
  if (ipaddr.isValidCIDR(entry)) return normalise(ipaddr.parseCIDR(entry))
  if (!ipaddr.isValid(entry)) throw new TypeError(`"${entry}" is neither an IP address nor a CIDR block`)
  const address = ipaddr.process(entry)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** Converts an IPv4-mapped block: `::ffff:10.0.0.0/104` is `10.0.0.0/8`. */
function normalise([base, bits]: Block): Block {
  if (base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= 96)
    return [base.toIPv4Address(), bits - 96]
  return [base, bits]
}
