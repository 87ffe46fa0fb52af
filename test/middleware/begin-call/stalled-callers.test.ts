import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { cutStalledCallers } from '../../../lib/middleware/begin-call/index.ts'
import { type RawClient, rawClient, serveApp } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { drained } from '../../support/drained.ts'
import { chatBody } from '../../support/gateway.ts'
import { chatChunk } from '../../support/scripted-upstream.ts'
import { sessionGateway } from '../../support/session-gateway.ts'
import { until } from '../../support/until.ts'

const STALLED_MS = 600
const MB = 1024 * 1024
const EVENT = chatChunk({ content: 'x'.repeat(32 * 1024) })

/** Writes for ever, as fast as it is taken. */
async function flood(res: Writable, piece: string | Buffer): Promise<void> {
  while (!res.destroyed) {
    if (!res.write(piece)) await drained(res)
  }
}

/** A masked frame. */
const PING = Buffer.from([0x89, 0x80, 0, 0, 0, 0])

const KINDS = ['stream', 'answer', 'list', 'download', 'websocket'] as const

describe('a caller that takes no byte of its answer', { concurrency: true }, async () => {
  const cleanUp = cleaningUp()
  const sockets = new WebSocketServer({ noServer: true })
  const upstream = await byteUpstream(
    cleanUp,
    async (req, res) => {
      const body: Buffer[] = []
      for await (const piece of req) body.push(piece as Buffer)
      if (req.url === '/v1/bytes') {
        res.writeHead(200, { 'content-type': 'application/octet-stream' })
        await flood(res, Buffer.alloc(64 * 1024, 'x'))
      } else if (String(Buffer.concat(body)).includes('"stream":true')) {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        await flood(res, EVENT)
      } else {
        const message = { role: 'assistant', content: 'x'.repeat(12 * MB) }
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(JSON.stringify({ id: 'x', choices: [{ index: 0, message, finish_reason: 'stop' }] }))
      }
    },
    (req, socket, head) => {
      sockets.handleUpgrade(req, socket, head, (session) => {
        session.on('error', () => {})
        void flood(socket, Buffer.concat([Buffer.from([0x82, 126, 0x80, 0]), Buffer.alloc(0x8000)]))
      })
    },
  )
  const ids = [...KINDS.flatMap((kind) => [kind, `slow-${kind}`]), 'paused', 'waits']
  const gateway = await sessionGateway(cleanUp, {
    upstream: upstream.url,
    stalledMs: STALLED_MS,
    keys: memoryKeyDirectory,
    config: {
      accounts: ids.map((id) => ({ id, limits: { concurrency: 1 } })),
      keys: ids.map((id) => ({ id, account: id, secret: `sk-${id}` })),
    },
  })

  function begin(kind: (typeof KINDS)[number], id: string): RawClient {
    const body = JSON.stringify(chatBody({ stream: kind === 'stream' }))
    const more = `host: x\r\nauthorization: Bearer sk-${id}\r\ncontent-type: application/json\r\n`
    const call = `POST /v1/chat/completions HTTP/1.1\r\n${more}content-length: ${body.length}\r\n\r\n${body}`
    const raw = rawClient(
      gateway.port,
      {
        stream: call,
        answer: call,
        list: `GET /v1/list HTTP/1.1\r\n${more}\r\n`,
        download: `GET /v1/bytes HTTP/1.1\r\n${more}\r\n`,
        websocket: `GET /v1/realtime HTTP/1.1\r\n${more}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      }[kind],
    )
    cleanUp.after(() => raw.socket.destroy())
    return raw
  }
  const callOf = (id: string) => [...gateway.open].find(({ principal }) => principal?.keyId === id)

  for (const kind of KINDS) {
    it(`is cut: ${kind}`, async () => {
      const { socket } = begin(kind, kind)
      await new Promise((resolve) => socket.once('data', resolve))
      socket.pause()
      // It goes on sending, which is no reason to keep it.
      const sending = setInterval(() => socket.write(kind === 'websocket' ? PING : '\r\n'), 50)
      cleanUp.after(() => clearInterval(sending))
      await until(() => callOf(kind) === undefined, 'the end of the call', 100 * STALLED_MS)
      clearInterval(sending)
      const [entry] = await gateway.entriesOf(kind)
      assert.deepEqual([entry?.error_code, entry?.outcome], ['client_closed_request', 'interrupted'])
      // Its slot is free.
      const next = begin(kind, kind)
      await next.until(kind === 'websocket' ? 'HTTP/1.1 101' : 'HTTP/1.1 200')
      next.socket.destroy()
      socket.destroy()
    })

    it(`is not cut where it takes little at a time: ${kind}`, async () => {
      const { socket } = begin(kind, `slow-${kind}`)
      const closed = once(socket, 'close').then(() => true)
      let taken = 0
      socket.on('data', (piece: string) => {
        taken += piece.length
        socket.pause()
        setTimeout(() => socket.resume(), 60)
      })
      const whole = kind === 'answer' || kind === 'list' ? Number.POSITIVE_INFINITY : 0
      // The others here are served as fast as they read, and this one after them.
      await until(() => taken > 0)
      const startedAt = performance.now()
      const cut = await Promise.race([closed, sleep(3 * STALLED_MS)])
      assert.notEqual(cut, true, `cut after ${performance.now() - startedAt} ms, ${taken} bytes`)
      assert.ok(taken < whole + 64 * MB)
      socket.destroy()
    })
  }

  it('is none whose process was stopped for longer', async () => {
    const { socket } = begin('stream', 'paused')
    const closed = once(socket, 'close').then(() => true)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.pause()
    // It has been seen to take nothing, for a part of its time.
    await sleep(STALLED_MS / 2)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * STALLED_MS)
    socket.resume()
    assert.notEqual(await Promise.race([closed, sleep(STALLED_MS)]), true)
    socket.destroy()
  })

  it('is none while nothing is sent to it', async () => {
    const silent = rawClient(
      gateway.port,
      `GET /v1/list HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-waits\r\n`,
    )
    await sleep(3 * STALLED_MS)
    assert.equal(silent.socket.destroyed, false)
    silent.socket.write('\r\n')
    await silent.until('HTTP/1.1 200')
    silent.socket.destroy()
  })

  it('takes an option that can be used', async () => {
    const app = await serveApp(() => {})
    for (const afterMs of [0, -1, Number.NaN])
      assert.throws(() => cutStalledCallers(app.server, { afterMs }), /"afterMs" must be above 0/)
    await app.close()
  })
})
