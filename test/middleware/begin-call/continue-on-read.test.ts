import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import express, { type Request } from 'express'
import { beginCall, refuseUnparsed, serverRefusals } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rawClient } from '../../support/app-server.ts'

/** How a handler reads a body. */
const READERS: Readonly<Record<string, (req: Request) => Promise<string>>> = {
  async 'by iteration'(req) {
    let text = ''
    for await (const piece of req) text += piece
    return text
  },
  async 'by its events'(req) {
    let text = ''
    req.on('data', (piece: Buffer) => {
      text += piece
    })
    await once(req, 'end')
    return text
  },
  async 'with a pause'(req) {
    const reading = READERS['by its events']!(req)
    req.pause()
    await new Promise(setImmediate)
    req.resume()
    return reading
  },
}

const app = express()
let begin = (): void => {}
for (const [name, read] of Object.entries(READERS))
  app.post(`/${encodeURIComponent(name)}`, async (req, res) => {
    await new Promise<void>((resolve) => {
      begin = resolve
    })
    res.end(`read ${await read(req)}`)
  })
app.post('/refused', (_req, res) => void res.status(403).end('no'))
app.post('/begun', async (req, res) => {
  res.write('begun')
  res.end(await READERS['by iteration']!(req))
})
const refused = express().use(beginCall(), refuseUnparsed(), errorEnvelope())
const server = createServer({ requireHostHeader: false })
for (const [event, listener] of Object.entries(serverRefusals(app, refused))) server.on(event, listener)

let port = 0
before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  port = (server.address() as AddressInfo).port
})
after(() => server.close().closeAllConnections())

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const asking = (path: string, length: number, body = '') =>
  rawClient(
    port,
    `POST /${encodeURIComponent(path)} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\n\r\n${body}`,
  )

describe('a caller that waits for a 100', () => {
  for (const name of Object.keys(READERS))
    it(`gets one, when the body is first read: ${name}`, async () => {
      const body = 'x'.repeat(200_000)
      const client = asking(name, body.length)
      await once(server, 'request')
      assert.equal(client.received, '')
      begin()
      await client.until(CONTINUE)
      client.socket.write(body)
      await client.until(`read ${body}`)
      assert.equal(client.received.split(CONTINUE).length, 2)
      assert.match(client.received, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
      client.socket.destroy()
    })

  it('gets none where it is refused before, and the connection is closed', async () => {
    const received = await asking('refused', 10).end()
    assert.match(received, /^HTTP\/1\.1 403 /)
    assert.match(received, /\r\nconnection: close\r\n/i)
    assert.doesNotMatch(received, /100 Continue/)
  })

  it('gets none where its answer has begun, and its body is read all the same', async () => {
    const client = asking('begun', 5, 'hello')
    await client.until('hello')
    assert.doesNotMatch(client.received, /100 Continue/)
    client.socket.destroy()
  })
})
