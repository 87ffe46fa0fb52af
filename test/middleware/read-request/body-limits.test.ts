import assert from 'node:assert/strict'
import { IncomingMessage, request, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { NextFunction, Request, Response } from 'express'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { configWith } from '../../core/config/config.ts'
import { loadConfig } from '../../support/any-config.ts'
import { type RawClient, rawClient, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatBody, KEY } from '../../support/gateway.ts'
import { catalog } from '../../support/one-line-catalog.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { until } from '../../support/until.ts'
import { checkEnvelope, refusalOf } from './refusal.ts'

describe('the body limit', async () => {
  const LIMIT = 100_000
  const MEGABYTE = 1024 * 1024
  const UPLOAD = Buffer.alloc(12 * MEGABYTE, 'a')

  /** A valid body of exactly that many bytes. */
  function bodyOf(bytes: number): Buffer {
    const empty = JSON.stringify(chatBody({ filler: '' }))
    return Buffer.from(JSON.stringify(chatBody({ filler: 'x'.repeat(bytes - empty.length) })))
  }

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

  describe('a client that uploads 12 MB gets its refusal, not a reset connection', () => {
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
    // The bytes that are not read are lost with the connection.
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
    assert.ok(socket.bytesWritten < 25 * UPLOAD.length)
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

const { catalog: ownCatalog } = loadConfig(configWith())

/** The code that refuses a request of so many bytes before any of them has come; undefined while it is waited for. */
async function refused(bytes: number, options: { bodyLimitBytes?: number } = {}): Promise<unknown> {
  const req = new IncomingMessage(new Socket())
  req.method = 'POST'
  req.url = '/v1/chat/completions'
  req.headers = { 'content-type': 'application/json', 'content-length': String(bytes) }
  const res = new ServerResponse(req)
  Object.assign(req, { res })
  const told: unknown[] = []
  const middleware = readRequest({ catalog: ownCatalog, operation: chatCompletions, ...options })
  middleware(req as Request, res as Response, (error?: unknown) => void told.push(error))
  await new Promise(setImmediate)
  assert.ok(told.length <= 1)
  const [error] = told
  return error instanceof GatewayError ? error.code : error
}

describe('the longest body', () => {
  it('has 20 MiB, unless the app says otherwise', async () => {
    assert.equal(await refused(20 * 1024 * 1024), undefined)
    assert.equal(await refused(20 * 1024 * 1024 + 1), 'request_too_large')
    assert.equal(await refused(7, { bodyLimitBytes: 7 }), undefined)
    assert.equal(await refused(8, { bodyLimitBytes: 7 }), 'request_too_large')
  })

  it('has some bytes at least', () => {
    for (const bodyLimitBytes of [0, -1, Number.NaN])
      assert.throws(
        () => readRequest({ catalog: ownCatalog, bodyLimitBytes }),
        /"bodyLimitBytes" must be a positive number/,
      )
    assert.doesNotThrow(() => readRequest({ catalog: ownCatalog, bodyLimitBytes: 1 }))
    assert.throws(() => readRequest({} as never), /"catalog" must be a catalogue/)
  })
})

describe('the budget of bodies that have not come whole', async () => {
  const LIMIT = 64 * 1024
  const BUDGET = 4 * LIMIT
  const KEYS = ['a1', 'a2', 'a3', 'b1'] as const

  /** A valid body of exactly that many bytes. */
  function bodyOf(bytes: number): string {
    const empty = JSON.stringify(chatBody({ filler: '' }))
    return JSON.stringify(chatBody({ filler: 'x'.repeat(bytes - empty.length) }))
  }

  const cleanUp = cleaningUp()
  const { gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: {
      bodyLimitBytes: LIMIT,
      bodyBudgetBytes: BUDGET,
      accounts: [{ id: 'a' }, { id: 'b' }],
      keys: KEYS.map((key) => ({ id: key, account: key[0], secret: `sk-${key}` })),
    },
  }))
  const port = Number(new URL(gateway.url).port)

  function head(key: string, more: string): string {
    return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`
  }
  function client(bytes: string): RawClient {
    const raw = rawClient(port, bytes)
    cleanUp.after(() => raw.socket.destroy())
    return raw
  }
  /** Sends the beginning of a body that announces `declared` bytes. */
  function upload(key: string, sent: number, declared = LIMIT): RawClient {
    return client(head(key, `content-length: ${declared}`) + bodyOf(declared).slice(0, sent))
  }
  const fits = async (key: string, body = bodyOf(LIMIT)) => {
    const raw = client(head(key, `content-length: ${body.length}`))
    raw.socket.write(body.slice(0, 1000))
    await new Promise((resolve) => setTimeout(resolve, 20))
    raw.socket.write(body.slice(1000))
    return statusOf(await raw.end())
  }
  const statusOf = (received: string) => Number(received.split(' ')[1])
  const allOver = () => until(() => gateway.openCalls.size === 0, 'the end of all calls')
  async function cut(clients: readonly RawClient[]): Promise<void> {
    for (const { socket } of clients) socket.destroy()
    await allOver()
  }
  const settled = () => new Promise((resolve) => setTimeout(resolve, 100))

  /** Sends a valid body of so many bytes in chunks of so many. */
  const inChunks = async (bytes: number, size: number) => {
    const body = bodyOf(bytes)
    let chunks = ''
    for (let at = 0; at < bytes; at += size) {
      const chunk = body.slice(at, at + size)
      chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
    }
    return client(`${head('a1', 'transfer-encoding: chunked')}${chunks}0\r\n\r\n`).end()
  }

  for (const [bytes, size] of [
    [4000, 1],
    [LIMIT, 40],
    [LIMIT, 1000],
  ] as const) {
    it(`takes a body of ${bytes} bytes in chunks of ${size}`, async () => {
      assert.equal(statusOf(await inChunks(bytes, size)), 200)
    })
  }

  for (const [bytes, size] of [
    [10_000, 1],
    [LIMIT, 8],
  ] as const) {
    it(`refuses a body of ${bytes} bytes in chunks of ${size}, which take more work than bytes`, async () => {
      const received = await inChunks(bytes, size)
      assert.equal(statusOf(received), 400)
      assert.match(received, /too many pieces/)
      await allOver()
      assert.equal(await fits('a1'), 200, 'what it held is free')
    })
  }

  it('refuses a key whose slow uploads hold twice the limit, and no other key', async () => {
    const slow = [upload('a1', LIMIT - 1), upload('a1', LIMIT - 1)]
    await settled()
    const third = upload('a1', 2000)
    const received = await third.end()
    assert.equal(statusOf(received), 429)
    assert.match(received, /"code":"concurrency_limited"/)
    assert.match(received, /retry-after: 1\r/i)
    assert.equal(await fits('b1'), 200)
    // A body that came whole at once is never held.
    assert.equal(
      (await gateway.post('/v1/chat/completions', chatBody(), { headers: { authorization: 'Bearer sk-a1' } }))
        .status,
      200,
    )
    for (const { socket } of slow) socket.write('}')
    for (const each of slow) assert.equal(statusOf(await each.end()), 200, 'those that came first are served')
    await allOver()
    assert.equal(await fits('a1'), 200)
  })

  it('does not count what is only announced', async () => {
    const announced = Array.from({ length: 50 }, () => upload('a1', 10))
    await until(() => gateway.openCalls.size === 50, 'all calls')
    await settled()
    assert.equal(await fits('a1', bodyOf(LIMIT / 2)), 200)
    await cut(announced)
  })

  it('of the process is taken from the account that holds most, over all its keys', async () => {
    const slow = ['a1', 'a2', 'a3', 'a1', 'a2'].map((key) => upload(key, LIMIT - 1))
    await until(() => slow.some(({ received }) => received !== ''), 'the refusal of the last of them')
    const refused = slow.filter(({ received }) => received !== '')
    assert.equal(refused.length, 1)
    const received = await (refused[0] as RawClient).end()
    assert.equal(statusOf(received), 503)
    assert.match(received, /"code":"upstream_overloaded"/)
    assert.match(received, /retry-after: 1\r/i)
    assert.equal(await fits('b1'), 200, 'the other account has room')
    assert.equal(await fits('b1'), 200)
    await until(() => gateway.openCalls.size === 3, 'one more of the first account has given way')
    await cut(slow)
  })

  it('counts what a body becomes when it is decompressed, and as little pieces as they come in', async () => {
    const slow = [upload('a1', LIMIT - 1), upload('a1', LIMIT / 2)]
    await settled()
    const packed = gzipSync(bodyOf(LIMIT)).toString('latin1')
    const small = client(
      `${head('a1', `content-encoding: gzip\r\ncontent-length: ${packed.length}`)}${packed}`,
    )
    assert.equal(statusOf(await small.end()), 429)
    assert.equal(await fits('b1'), 200)
    await cut(slow)
    const crumbs = client(head('a1', 'transfer-encoding: chunked'))
    for (const byte of bodyOf(3000)) crumbs.socket.write(`1\r\n${byte}\r\n`)
    crumbs.socket.write('0\r\n\r\n')
    assert.equal(statusOf(await crumbs.end()), 200)
  })

  describe('comes back in full', () => {
    const most = LIMIT - 1
    const ends: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
      'when the body is whole': (key) => fits(key),
      'when it is no JSON': (key) => fits(key, 'x'.repeat(LIMIT)),
      'when it is compressed': (key) =>
        fits(key, gzipSync(bodyOf(LIMIT), { level: 0 }).toString('latin1').slice(0, LIMIT)),
      'when it is too large': async (key) => {
        const raw = client(
          `${head(key, 'transfer-encoding: chunked')}${(LIMIT + 1).toString(16)}\r\n${'x'.repeat(LIMIT + 1)}\r\n`,
        )
        await raw.until('request_too_large')
        raw.socket.end('0\r\n\r\n')
        await raw.end()
      },
      'when the caller leaves': async (key) => {
        const raw = upload(key, most)
        await settled()
        raw.socket.end()
        await raw.end()
      },
      'when the connection is reset': async (key) => {
        const raw = upload(key, most)
        await settled()
        raw.socket.resetAndDestroy()
      },
      'when another one is refused for want of room': async (key) => {
        const slow = [upload(key, most), upload(key, most), upload(key, most)]
        await until(() => slow.some(({ received }) => received !== ''))
        await cut(slow)
      },
    }
    for (const [when, end] of Object.entries(ends)) {
      it(when, async () => {
        for (let i = 0; i < 3; i++) await end('a2')
        await allOver()
        // All the room of the key, and no byte more.
        const slow = [upload('a2', most), upload('a2', most)]
        await settled()
        assert.deepEqual(
          slow.map(({ received }) => received),
          ['', ''],
        )
        const third = upload('a2', 2000)
        assert.equal(statusOf(await third.end()), 429)
        await cut(slow)
      })
    }
  })
})
