import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { CleanUp } from './clean-up.ts'

const TYPES: Readonly<Record<number, 4 | 6>> = { 1: 4, 28: 6 }
const FAILURE = 2
const NO_SUCH_NAME = 3

/** A real server of names on the loopback. */
export interface DnsServer {
  readonly address: string
  /**
   * The addresses of each name, or of a name and a family (`a.example 6`); 'hangs': no answer comes; 'fails': the server
   * reports a failure. A name that is not here does not exist.
   */
  readonly names: Map<string, readonly string[] | 'hangs' | 'fails'>
  /** The names it was asked for, with the family. */
  readonly asked: string[]
}

/** Starts a server of names, which this process asks for the rest of the test. */
export async function startDnsServer(t: CleanUp): Promise<DnsServer> {
  const names: DnsServer['names'] = new Map()
  const asked: string[] = []
  const socket = createSocket('udp4').on('message', (query, from) => {
    const { name, end } = questionOf(query)
    const family = TYPES[query.readUInt16BE(end)]
    asked.push(`${name} ${family}`)
    const known = names.get(`${name} ${family}`) ?? names.get(name)
    if (known === 'hangs') return
    const found = known === 'fails' ? [] : (known ?? []).filter((ip) => isIPv6(ip) === (family === 6))
    const code = known === 'fails' ? FAILURE : known ? 0 : NO_SUCH_NAME
    socket.send(answerTo(query, end + 4, code, found), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const before = dns.getServers()
  const address = `127.0.0.1:${socket.address().port}`
  dns.setServers([address])
  t.after(() => {
    dns.setServers(before)
    socket.close()
  })
  return { address, names, asked }
}

function questionOf(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

function answerTo(query: Buffer, end: number, code: number, addresses: readonly string[]): Buffer {
  const head = Buffer.from(query.subarray(0, end))
  head.writeUInt16BE(0x8180 | code, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([head, ...addresses.map(recordOf)])
}

/** A record of the name in the question, for no time. */
function recordOf(address: string): Buffer {
  const bytes = bytesOf(address)
  const record = Buffer.alloc(12)
  record.writeUInt16BE(0xc00c, 0)
  record.writeUInt16BE(bytes.length === 4 ? 1 : 28, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt16BE(bytes.length, 10)
  return Buffer.concat([record, bytes])
}

function bytesOf(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number))
  const host = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [left = '', right] = host.split('::')
  const words = (text: string) => (text === '' ? [] : text.split(':'))
  const tail = right === undefined ? [] : words(right)
  const zeros = Array.from({ length: 8 - words(left).length - tail.length }, () => '0')
  const hex = [...words(left), ...zeros, ...tail].map((word) => word.padStart(4, '0')).join('')
  return Buffer.from(hex, 'hex')
}
