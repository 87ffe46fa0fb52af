import type { buildConnector } from 'undici'
import type { Line } from '../../core/catalog/index.ts'
import { lookupAny } from '../../core/public-address/index.ts'
import { openTunnel } from './tunnel.ts'

/** The members of a line that decide how it is connected to. */
export type ConnectedLine = Pick<Line, 'proxy' | 'tls' | 'timeouts'>

/** The options of TLS to a line. */
interface TlsOptions {
  readonly ca?: string[]
  readonly cert?: string
  readonly key?: string
}

/** Returns what TLS to a line needs. Its authority is trusted beside Node's: its token endpoint may need those. */
export function tlsOptions({ tls: { ca, cert, key } = {} }: ConnectedLine): TlsOptions {
  return {
    ...(ca !== undefined && {
      ca: [...process.getBuiltinModule('node:tls').getCACertificates('default'), ca],
    }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  }
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
  const { proxy } = line
  const timeout = line.timeouts.connectMs
  const { ca, ...own } = tlsOptions(line)
  const direct = build({ timeout, allowH2: false, lookup: lookupAny, ...(ca && { ca }), ...(isLine && own) })
  if (proxy === undefined) return direct
  return (target, done) => {
    const isTls = target.protocol === 'https:'
    const end = { hostname: target.hostname, port: Number(target.port) || (isTls ? 443 : 80) }
    openTunnel(end, { proxy, timeoutMs: timeout, ca })
      .then((socket) => (isTls ? direct({ ...target, httpSocket: socket }, done) : done(null, socket)))
      .catch((error: Error) => done(error, null))
  }
}
