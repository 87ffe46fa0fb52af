import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

/** A TCP server on loopback that runs the script of a test, HTTP or not. */
export interface RawServer {
  /** `127.0.0.1:port` */
  readonly host: string
  /** `http://127.0.0.1:port` */
  readonly url: string
  /** How many connections were made. */
  readonly connections: number
  /** The bytes of all requests, in the order they came. */
  readonly received: string
  close(): Promise<void>
}

/** The handler of a raw server for a connection's data; `request` counts the requests of that connection from 0. */
export type RawScript = (socket: Socket, request: number, connection: number) => void

/** Starts a raw server; the script runs once for each chunk that holds the end of a request's head. */
export async function startRawServer(script: RawScript = () => {}): Promise<RawServer> {
  const open = new Set<Socket>()
  let connections = 0
  let received = ''
  const server = createServer((socket) => {
    const connection = connections++
    let request = 0
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (chunk.includes('\r\n\r\n')) script(socket, request++, connection)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    url: `http://${host}`,
    get connections() {
      return connections
    },
    get received() {
      return received
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  }
}
