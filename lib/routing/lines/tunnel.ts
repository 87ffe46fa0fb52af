import type { Socket } from 'node:net'
import { http } from '../../core/call/node-http.ts'
import { lookupAny } from '../../core/public-address/index.ts'
import { timeLimit } from '../../core/timing/index.ts'
import { UnsentError } from '../attempt/failure.ts'

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
