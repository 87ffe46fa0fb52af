import type { TestContext } from 'node:test'
import { type WebSocket, WebSocketServer } from 'ws'
import { type ByteUpstream, byteUpstream } from './byte-upstream.ts'

/** A WebSocket server on loopback. */
export interface WebSocketUpstream extends ByteUpstream {
  /** Sessions open now. */
  readonly sessions: ReadonlySet<WebSocket>
}

/** Starts one that is closed at the end of the test; by default it sends back what it receives. */
export async function webSocketUpstream(
  t: TestContext,
  onSession: (session: WebSocket) => void = echo,
): Promise<WebSocketUpstream> {
  const server = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
  })
  server.on('headers', (headers) => headers.push('set-cookie: a=1', 'server: cloud', 'x-request-id: theirs'))
  const sessions = new Set<WebSocket>()
  const upstream = await byteUpstream(
    t,
    (_req, res) => void res.writeHead(426, { 'set-cookie': 'a=1' }).end('words of the upstream'),
    (req, socket, head) => {
      server.handleUpgrade(req, socket, head, (session) => {
        sessions.add(session)
        session.on('close', () => sessions.delete(session))
        session.on('error', () => {})
        onSession(session)
      })
    },
  )
  return { ...upstream, sessions }
}

function echo(session: WebSocket): void {
  session.on('message', (data, isBinary) => session.send(data, { binary: isBinary }))
}
