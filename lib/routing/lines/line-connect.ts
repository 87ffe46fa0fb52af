import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { http } from '../../core/call/node-http.ts'
import type { Line } from '../../core/catalog/index.ts'
import { lookupAny } from '../../core/public-address/index.ts'
import { timeLimit } from '../../core/timing/index.ts'
import { UnsentError } from '../attempt/failure.ts'

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

/** The host that a tunnel leads to. */
export interface TunnelEnd {
  readonly hostname: string
  readonly port: number
}

/** The options of a tunnel. */
export interface TunnelOptions {
  /** The URL of the proxy, which may hold a name and a password. */
  readonly proxy: string
  readonly timeoutMs: number
  /** Further authorities that a proxy over https is trusted by. */
  readonly ca?: string[] | undefined
}

/** Opens a tunnel through a proxy by `CONNECT`, over which the caller speaks with the host at its end. */
export function openTunnel(
  { hostname, port }: TunnelEnd,
  { proxy, timeoutMs, ca }: TunnelOptions,
): Promise<Socket> {
  const at = new URL(proxy)
  const host = hostname.includes(':') && !hostname.startsWith('[') ? `[${hostname}]` : hostname
  const path = `${host}:${port}`
  const request = (at.protocol === 'https:' ? process.getBuiltinModule('node:https') : http).request({
    method: 'CONNECT',
    host: at.hostname.replace(/^\[|\]$/g, ''),
    port: at.port || (at.protocol === 'https:' ? 443 : 80),
    path,
    headers: { host: path, ...authorization(at) },
    agent: false,
    lookup: lookupAny,
    ...(ca && { ca }),
  })
  const inTime = timeLimit(timeoutMs, () => {
    request.destroy(new UnsentError('the proxy took too long', true))
  })
  return new Promise<Socket>((resolve, reject) => {
    request
      .on('connect', ({ statusCode = 0 }, socket) => {
        if (statusCode >= 200 && statusCode < 300) {
          resolve(socket as Socket)
          return
        }
        socket.destroy()
        reject(new UnsentError(`the proxy answered ${statusCode}`))
      })
      .on('error', (error: NodeJS.ErrnoException) => {
        const fault = `the proxy cannot be reached (${error.code ?? error.name})`
        reject(error instanceof UnsentError ? error : new UnsentError(fault))
      })
      .end()
  }).finally(inTime)
}

function authorization({ username, password }: URL): { 'proxy-authorization'?: string } {
  if (username === '' && password === '') return {}
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)
  return { 'proxy-authorization': `Basic ${credentials.toString('base64')}` }
}
