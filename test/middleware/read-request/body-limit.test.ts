import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { NextFunction, Request, Response } from 'express'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { chatBody, KEY } from '../../support/gateway.ts'
import { catalog } from '../../support/one-line-catalog.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { checkEnvelope, refusalOf } from './refusal.ts'

const LIMIT = 100_000
const MEGABYTE = 1024 * 1024
const UPLOAD = Buffer.alloc(30 * MEGABYTE, 'a')

/** A valid body of exactly that many bytes. */
function bodyOf(bytes: number): Buffer {
  const empty = JSON.stringify(chatBody({ filler: '' }))
  return Buffer.from(JSON.stringify(chatBody({ filler: 'x'.repeat(bytes - empty.length) })))
}

describe('the body limit', async () => {
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: { bodyLimitBytes: LIMIT },
  }))

  const send = (body: NonNullable<RequestInit['body']>, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    } as RequestInit)
  const chunked = (body: Buffer) => new Blob([new Uint8Array(body)]).stream()

  it('a body of exactly the limit is answered, with and without Content-Length', async () => {
    assert.equal((await send(new Uint8Array(bodyOf(LIMIT)))).status, 200)
    assert.equal((await send(chunked(bodyOf(LIMIT)))).status, 200)
    assert.match(String(upstream.requests.at(-1)?.json.filler), /^x+$/)
  })

  it('one byte more is request_too_large, with and without Content-Length, and reaches no upstream', async () => {
    const before = upstream.requests.length
    for (const body of [new Uint8Array(bodyOf(LIMIT + 1)), chunked(bodyOf(LIMIT + 1))]) {
      const refusal = await refusalOf(await send(body))
      assert.equal(refusal.status, 413)
      assert.equal(refusal.code, 'request_too_large')
    }
    assert.equal(upstream.requests.length, before)
  })

  it('counts after decompression: a zip bomb is refused, a compressed body under the limit answered', async () => {
    const before = upstream.requests.length
    for (const [encoding, compress] of [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
    ] as const) {
      const bomb = compress(Buffer.alloc(4 * MEGABYTE, ' '))
      assert.ok(bomb.length < LIMIT)
      const refusal = await refusalOf(await send(new Uint8Array(bomb), { 'content-encoding': encoding }))
      assert.equal(refusal.code, 'request_too_large')
      const fits = compress(bodyOf(LIMIT))
      assert.equal((await send(new Uint8Array(fits), { 'content-encoding': encoding })).status, 200)
    }
    assert.equal(upstream.requests.length, before + 2)
    assert.equal(upstream.requests.at(-1)?.headers['content-encoding'], undefined)
  })

  describe('a client that uploads 30 MB gets its refusal, not a reset connection', () => {
    const refused = [
      { name: 'too large', path: '/v1/chat/completions', headers: {}, status: 413 },
      { name: 'wrong type', path: '/v1/messages', headers: { 'content-type': 'image/png' }, status: 400 },
      { name: 'unknown path', path: '/v1/nowhere', headers: {}, status: 404 },
    ]
    for (const { name, path, headers, status } of refused) {
      for (const length of ['with', 'without'] as const) {
        it(`${name}: fetch, node:http and a client that reads last, ${length} Content-Length`, async () => {
          const all = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers }
          const viaFetch = await fetch(gateway.url + path, {
            method: 'POST',
            body: length === 'with' ? new Uint8Array(UPLOAD) : chunked(UPLOAD),
            duplex: 'half',
            headers: all,
          } as RequestInit)
          assert.equal((await refusalOf(viaFetch)).status, status)
          const viaHttp = await upload(gateway.url + path, all, length === 'with')
          assert.equal(checkEnvelope(viaHttp.status, viaHttp.requestId, viaHttp.text).status, status)
          assert.match(
            await uploadThenRead(gateway.url, path, all, length === 'with'),
            new RegExp(`^HTTP/1.1 ${status} `),
          )
        })
      }
    }
  })

  it('a caller without a key gets its refusal while it uploads; no more of its body is read', async () => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body: UPLOAD })
    assert.equal((await refusalOf(answer)).status, 401)
  })

  it('the answer comes at once, without waiting for the end of an upload that has none', async () => {
    const { port, hostname } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write(
      `${head('/v1/chat/completions', { authorization: `Bearer ${KEY}` })}transfer-encoding: chunked\r\n\r\n`,
    )
    socket.write(`${(LIMIT + 1).toString(16)}\r\n${'['.repeat(LIMIT + 1)}\r\n`)
    const [answer] = (await new Promise<Buffer[]>((resolve) =>
      socket.once('data', (data) => resolve([data])),
    )) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /)
    socket.destroy()
  })

  it('nothing more of a body over the limit is read before an app that answers itself has answered', async (t) => {
    const readOn = Promise.withResolvers<number>()
    const app = await serveApp((app) => {
      app.post('/v1/chat/completions', readRequest({ catalog, bodyLimitBytes: LIMIT }))
      app.use(async (_error: unknown, req: Request, res: Response, _next: NextFunction) => {
        const before = req.socket.bytesRead
        await sleep(200)
        readOn.resolve(req.socket.bytesRead - before)
        res.sendStatus(413)
      })
    })
    t.after(app.close)
    const socket = connect(Number(new URL(app.url).port))
    // What is not read is lost with the connection.
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    const lines = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }
    socket.write(`${head('/v1/chat/completions', lines)}\r\n${UPLOAD.length.toString(16)}\r\n`)
    socket.write(UPLOAD)
    const bytes = await readOn.promise
    assert.ok(bytes < MEGABYTE, `${bytes} bytes`)
  })

  it('an upload without end is read for a while and then cut', async () => {
    const { port, hostname } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.resume()
    socket.write(`${head('/v1/chat/completions', {})}content-length: ${1024 * UPLOAD.length}\r\n\r\n`)
    const writeOn = (): void => {
      while (!socket.destroyed && socket.write(UPLOAD.subarray(0, MEGABYTE)));
    }
    socket.on('drain', writeOn)
    writeOn()
    await new Promise((resolve) => socket.once('close', resolve))
    assert.ok(socket.bytesWritten < 10 * UPLOAD.length)
  })

  it('a refused upload that breaks off leaves no call open', async () => {
    const { port, hostname } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    socket.write(`${head('/v1/chat/completions', {})}content-length: ${UPLOAD.length}\r\n\r\n[`)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()
    while (gateway.openCalls.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  })
})

function head(path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}`
}

interface Answer {
  readonly status: number
  readonly requestId: unknown
  readonly text: string
}

/** Uploads with node:http, megabyte by megabyte as the socket drains. */
function upload(url: string, headers: Record<string, string>, withLength: boolean): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const size: Record<string, string | number> = withLength ? { 'content-length': UPLOAD.length } : {}
    const req = request(url, { method: 'POST', headers: { ...headers, ...size }, agent: false }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      res.on('error', reject)
      res.on('end', () =>
        resolve({ status: res.statusCode ?? 0, requestId: res.headers['x-request-id'], text }),
      )
    })
    req.on('error', reject)
    let at = 0
    const writeOn = (): void => {
      while (at < UPLOAD.length) {
        const part = UPLOAD.subarray(at, at + MEGABYTE)
        at += part.length
        if (req.write(part)) continue
        req.once('drain', writeOn)
        return
      }
      req.end()
    }
    writeOn()
  })
}

/** Reads nothing before everything is sent, as a simple blocking client does; resolves with the status line. */
function uploadThenRead(
  url: string,
  path: string,
  headers: Record<string, string>,
  withLength: boolean,
): Promise<string> {
  const { port, hostname } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    socket.on('error', reject)
    socket.pause()
    socket.write(head(path, headers))
    if (withLength) socket.write(`content-length: ${UPLOAD.length}\r\n\r\n`)
    else socket.write(`transfer-encoding: chunked\r\n\r\n${UPLOAD.length.toString(16)}\r\n`)
    socket.write(UPLOAD)
    socket.write(withLength ? '' : '\r\n0\r\n\r\n', () => {
      socket.once('data', (data) => {
        resolve(data.toString())
        socket.destroy()
      })
      socket.resume()
    })
  })
}
