import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { buildConnector } from 'undici'
import type { Line } from '../../core/catalog/index.ts'
import { openTunnel } from './tunnel.ts'

/** The members of a line that decide how it is connected to. */
export type ConnectedLine = Pick<Line, 'proxy' | 'tls' | 'timeouts'>

/** What TLS to a line needs. Its own authority is trusted beside the others, for its token endpoint may need those. */
export function tlsOptions({ tls: own }: ConnectedLine): Pick<ConnectionOptions, 'ca' | 'cert' | 'key'> {
  return {
    ...(own?.ca !== undefined && { ca: authorities(own.ca) }),
    ...(own?.cert !== undefined && { cert: own.cert }),
    ...(own?.key !== undefined && { key: own.key }),
  }
}

/** Returns the authorities that Node trusts, and one more. */
function authorities(own: string): string[] {
  return [...process.getBuiltinModule('node:tls').getCACertificates('default'), own]
}

/**
 * Returns what opens the connections of undici for a line: directly, or through its proxy.
 *
 * @param isLine whether they lead to the line itself, which alone sees its client certificate.
 */
export function connectorOf(
  line: ConnectedLine,
  build: typeof buildConnector,
  isLine = true,
): buildConnector.connector {
  const { cert: _cert, key: _key, ...anybody } = tlsOptions(line)
  const direct = build({
    timeout: line.timeouts.connectMs,
    allowH2: false,
    ...(isLine ? tlsOptions(line) : anybody),
  })
  if (line.proxy === undefined) return direct
  return (target, done) => {
    tunnelTo(line, target, (error, socket) => {
      if (error || !socket) done(error ?? new Error('there is no tunnel'), null)
      else if (target.protocol === 'https:') direct({ ...target, httpSocket: socket }, done)
      else done(null, socket)
    })
  }
}

/** Opens a tunnel through the proxy of a line. */
export function tunnelTo(
  { proxy = '', tls: own, timeouts }: ConnectedLine,
  { hostname, port, protocol }: Pick<buildConnector.Options, 'hostname' | 'port' | 'protocol'>,
  done: (error: Error | null, socket?: Socket) => void,
): void {
  const ca = own?.ca === undefined ? undefined : authorities(own.ca)
  const end = { hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
  openTunnel(end, { proxy, timeoutMs: timeouts.connectMs, ca }, done)
}
