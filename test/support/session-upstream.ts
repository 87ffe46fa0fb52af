import type { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { type ByteUpstream, byteUpstream } from './byte-upstream.ts'
import { chatChunk } from './scripted-upstream.ts'

/** An upstream whose answers begin and never end: streams, downloads, uploads that it reads, WebSockets that echo. */
export function endlessUpstream(t: Pick<TestContext, 'after'>): Promise<ByteUpstream> {
  const sockets = new WebSocketServer({ noServer: true })
  return byteUpstream(
    t,
    (req, res) => {
      if (req.method === 'POST' && req.url === '/v1/bytes') {
        req.resume()
        return
      }
      const isStream = req.url === '/v1/chat/completions'
      const type = isStream ? 'text/event-stream' : 'application/octet-stream'
      res.writeHead(200, { 'content-type': type, ...(!isStream && { 'content-length': '1000000' }) })
      res.write(isStream ? chatChunk({ content: 'first words' }) : 'first bytes')
    },
    (req, socket: Duplex, head) => {
      sockets.handleUpgrade(req, socket, head, (session) => {
        session.on('error', () => {})
        session.on('message', (data, isBinary) => session.send(data, { binary: isBinary }))
      })
    },
  )
}
