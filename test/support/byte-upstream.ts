import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'

/** A server on loopback that is given each request as it is, its body unread. */
export interface ByteUpstream {
  /** `http://127.0.0.1:port` */
  readonly url: string
  readonly server: Server
  /** Everything received so far. */
  readonly requests: IncomingMessage[]
  /** Connections open now. */
  readonly connections: ReadonlySet<Socket>
}

export type ByteScript = (req: IncomingMessage, res: ServerResponse) => void | Promise<void>

/** Starts one that is closed at the end of the test. */
export async function byteUpstream(
  t: Pick<TestContext, 'after'>,
  script: ByteScript,
  onUpgrade?: (req: IncomingMessage, socket: Duplex, head: Buffer) => void,
): Promise<ByteUpstream> {
  const requests: IncomingMessage[] = []
  const connections = new Set<Socket>()
  const server = createServer((req, res) => {
    requests.push(req)
    void script(req, res)
  })
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
    socket.on('error', () => {})
  })
  if (onUpgrade) {
    server.on('upgrade', (req, socket, head) => {
      requests.push(req)
      socket.on('error', () => {})
      onUpgrade(req, socket, head)
    })
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of connections) socket.destroy()
    return closed
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    requests,
    connections,
  }
}

/** Reads a body whole. */
export async function bytesOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
