import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { CleanUp } from './clean-up.ts'

/** A real proxy that opens tunnels by CONNECT. */
export interface ConnectProxy {
  readonly url: string
  /** The tunnels that were asked for, such as `api.example.com:443`, with the credentials that came along. */
  readonly asked: { readonly to: string; readonly authorization: string | undefined }[]
  /** Does something else with a request for a tunnel; undefined = opens it. */
  script: ((socket: Socket) => void) | undefined
}

/**
 * Starts a proxy.
 *
 * @param portOf the port of loopback that a tunnel leads to, whatever host it names.
 */
export async function connectProxy(cleanUp: CleanUp, portOf: (to: string) => number): Promise<ConnectProxy> {
  const sockets = new Set<Socket>()
  const server = createServer((_req, res) => res.writeHead(405).end())
  server.on('connect', (req: IncomingMessage, socket: Socket) => {
    const to = req.url ?? ''
    proxy.asked.push({ to, authorization: req.headers['proxy-authorization'] })
    sockets.add(socket)
    socket.on('error', () => {})
    if (proxy.script) return proxy.script(socket)
    const beyond = connect(portOf(to), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(beyond).pipe(socket)
    })
    sockets.add(beyond)
    beyond.on('error', () => socket.destroy())
    socket.on('close', () => beyond.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
    server.closeAllConnections()
  })
  const proxy: ConnectProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    script: undefined,
  }
  return proxy
}
