import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import express, { type RequestHandler } from 'express'
import fc from 'fast-check'
import { callOf, errorEnvelope, readRequest } from '../../../lib/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { rawClient, recordingLogger, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatBody, KEY, listen } from '../../support/gateway.ts'
import { catalog } from '../../support/one-line-catalog.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { until } from '../../support/until.ts'
import { refusalOf } from './refusal.ts'

describe('a request with a body', () => {
  const VALID = JSON.stringify(chatBody())
  const DEEP = 100_000
  const deep = (open: string, close: string) => open.repeat(DEEP) + close.repeat(DEEP)

  describe('the request body', async () => {
    const { upstream, gateway } = await suiteGateway()

    const send = (body: string | Uint8Array<ArrayBuffer> | undefined, headers: Record<string, string> = {}) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: typeof body === 'string' ? Buffer.from(body) : (body ?? null),
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      })

    /** Sends what must be refused; also checks that it reached no upstream. */
    async function refused(...args: Parameters<typeof send>) {
      const before = upstream.requests.length
      const refusal = await refusalOf(await send(...args))
      assert.equal(upstream.requests.length, before)
      return refusal
    }

    const broken: [name: string, body: string | Uint8Array<ArrayBuffer> | undefined, message: RegExp][] = [
      ['no body', undefined, /no body/],
      ['an empty body', '', /no body/],
      ['white space', ' \n', /not valid JSON/],
      ['broken JSON', '{"model":', /not valid JSON/],
      ['something behind the JSON', `${VALID}x`, /not valid JSON/],
      ['a byte order mark', `\ufeff${VALID}`, /not valid JSON/],
      [
        'bytes that are no UTF-8',
        Buffer.from([...Buffer.from('{"model":"'), 0xc3, 0x28, 0x22, 0x7d]),
        /UTF-8/,
      ],
      ['UTF-16', Buffer.from(VALID, 'utf16le'), /valid/],
      ['an array', '[]', /must be a JSON object/],
      ['null', 'null', /must be a JSON object/],
      ['a string', '"x"', /must be a JSON object/],
      ['a number', '7', /must be a JSON object/],
    ]
    for (const [name, body, message] of broken) {
      it(`${name}: invalid_request`, async () => {
        const refusal = await refused(body)
        assert.equal(refusal.status, 400)
        assert.equal(refusal.code, 'invalid_request')
        assert.match(refusal.message, message)
      })
    }

    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'json', '']) {
      it(`the content type "${type}" is refused, and the refusal names the right one`, async () => {
        const refusal = await refused(VALID, { 'content-type': type })
        assert.equal(refusal.code, 'invalid_request')
        assert.match(refusal.message, /Content-Type: application\/json/)
      })
    }

    for (const charset of ['latin1', 'utf-16', 'utf-7', '"iso-8859-1"']) {
      it(`the charset ${charset} is refused`, async () => {
        assert.equal(
          (await refused(VALID, { 'content-type': `application/json; charset=${charset}` })).status,
          400,
        )
      })
    }

    for (const type of [
      'application/json; charset=utf-8',
      'application/json;charset=UTF8',
      'application/json; charset="utf-8"',
      'application/json; charset = utf-8',
      'Application/JSON ; v=1',
      'application/vnd.api+json',
    ]) {
      it(`the content type ${type} is taken`, async () => {
        assert.equal((await send(VALID, { 'content-type': type })).status, 200)
      })
    }

    it('a request without a content type is read as JSON', async () => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: new Blob([VALID]),
        headers: { authorization: `Bearer ${KEY}` },
      })
      assert.equal(response.status, 200)
    })

    it('compressed bodies are read whatever the compression, and go upstream plain', async () => {
      for (const [encoding, bytes] of Object.entries({
        gzip: gzipSync(VALID),
        'x-gzip': gzipSync(VALID),
        deflate: deflateSync(VALID),
        br: brotliCompressSync(VALID),
        zstd: zstdCompressSync(VALID),
      })) {
        assert.equal(
          (await send(new Uint8Array(bytes), { 'content-encoding': encoding })).status,
          200,
          encoding,
        )
        assert.equal(upstream.requests.at(-1)?.json.messages[0]?.content, 'hi')
      }
    })

    it('a body that is not what Content-Encoding says, or cut short, cannot be decompressed', async () => {
      for (const encoding of ['gzip', 'deflate', 'br', 'zstd']) {
        const refusal = await refused(VALID, { 'content-encoding': encoding })
        assert.equal(refusal.code, 'invalid_request')
        assert.match(refusal.message, /cannot be decompressed/, encoding)
      }
      const refusal = await refused(new Uint8Array(gzipSync(VALID).subarray(0, 30)), {
        'content-encoding': 'gzip',
      })
      assert.match(refusal.message, /cannot be decompressed/)
    })

    it('an unknown content encoding is invalid_request, not a 415', async () => {
      const refusal = await refused(VALID, { 'content-encoding': 'compress' })
      assert.equal(refusal.status, 400)
      assert.match(refusal.message, /content encoding/i)
    })

    it('JSON 128 levels deep is passed on; another level, wherever it stands, is refused before it is parsed', async () => {
      // The body is the first level.
      const nested = (levels: number) =>
        `{"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)},${VALID.slice(1)}`
      assert.equal((await send(nested(128))).status, 200)
      const before = upstream.requests.length
      for (const body of [
        nested(129),
        `{"tools":[{"type":"function","function":${deep('{"a":', '}')}}],${VALID.slice(1)}`,
        `{"model":"chat","messages":${deep('[', ']')}}`,
        `{"provider":{"only":${deep('[', ']')}},${VALID.slice(1)}`,
        deep('[', ''),
      ]) {
        const response = await send(body)
        assert.equal(response.status, 400)
        assert.match(await response.text(), /nested more than 128 levels deep/)
      }
      assert.equal(upstream.requests.length, before)
    })

    it('__proto__ and constructor change nothing but what they say', async () => {
      const hostile = `{"__proto__":{"stream":true,"model":"nope"},"constructor":{"prototype":{"n":9}},${VALID.slice(1, -1)},"toString":1}`
      assert.equal((await send(hostile)).status, 200)
      const { raw } = upstream.requests.at(-1)!
      assert.equal(raw.toString(), hostile.replace('"chat"', '"upstream-chat-0"'))
      assert.equal(({} as Record<string, unknown>).n, undefined)
    })

    it('numbers beyond double precision reach the upstream digit for digit', async () => {
      const body = `{"seed":12345678901234567890123,"big":1e400,"exact":0.1000000000000000000001,${VALID.slice(1)}`
      assert.equal((await send(body)).status, 200)
      assert.ok(upstream.requests.at(-1)?.raw.toString().startsWith(body.slice(0, 60)))
    })

    it('Expect: 100-continue is served', async () => {
      const headers = { authorization: `Bearer ${KEY}`, expect: '100-continue' }
      const req = request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, agent: false })
      req.on('continue', () => req.end(VALID)).flushHeaders()
      const [response] = await once(req, 'response')
      assert.equal(response.statusCode, 200)
      response.resume()
    })
  })

  describe('a body that another parser has read', () => {
    const catalog = {
      models: new Map(),
      lines: [],
      linesOf: () => [],
      modelOf: () => undefined,
      widestWindow: () => undefined,
    }
    const cleanUp = cleaningUp()

    async function ask(parser: express.RequestHandler, body: string) {
      const app = express()
      app.use(beginCall(), parser, readRequest({ catalog }))
      app.use((req, res) => res.json({ raw: callOf(req).request?.body.raw.toString() }))
      app.use(errorEnvelope())
      const server = await listen(app)
      cleanUp.after(() => server.close().closeAllConnections())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`
      return refusalOf(
        await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } }),
      )
    }

    for (const [name, parser] of Object.entries({
      'express.json()': express.json({ limit: '2mb' }),
      'express.text()': express.text({ type: () => true, limit: '2mb' }),
      'express.raw()': express.raw({ type: () => true, limit: '2mb' }),
    })) {
      it(`is taken over from ${name}`, async () => {
        // The catalogue is empty: that the model is not found says that the body was read.
        assert.equal((await ask(parser, VALID)).code, 'model_not_found')
        assert.equal((await ask(parser, '{"model":"chat","messages":7}')).param, 'messages')
        assert.equal((await ask(parser, '[]')).code, 'invalid_request')
        assert.equal((await ask(parser, '{')).code, 'invalid_request')
      })
    }

    it('nested 100,000 levels deep it is refused in words, as it cannot be written out again', async () => {
      const refusal = await ask(express.json({ limit: '2mb' }), `{"x":${deep('[', ']')},${VALID.slice(1)}`)
      assert.equal(refusal.status, 400)
      assert.match(refusal.message, /nested too deeply/)
    })
  })
})

const bodyOf = (text: string) =>
  JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: text }] })

/** A server that answers with the bodies that it read, behind some other middlewares. */
async function serverOf(t: TestContext, ...before: RequestHandler[]) {
  const served: string[] = []
  let ended = 0
  const { port, close } = await serveApp((app) =>
    app
      .use((req, _res, next) => {
        req.on('end', () => ended++)
        next()
      })
      .post('/v1/chat/completions', ...before, readRequest({ catalog }), (req, res) => {
        const raw = callOf(req).request?.body.raw.toString() ?? ''
        served.push(raw)
        res.send(raw)
      })
      .use(errorEnvelope()),
  )
  t.after(close)
  const client = rawClient(port)
  client.socket.setNoDelay().setEncoding('utf8')
  t.after(() => client.socket.destroy())
  return { client, socket: client.socket, served, ended: () => ended }
}

const requestOf = (body: string) =>
  Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )

describe('a small body', () => {
  it('is read whole in whatever packets it comes, one request after the other', async (t) => {
    const { client, socket, served, ended } = await serverOf(t)
    const cuts = fc.array(fc.nat(400), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 200, unit: 'grapheme' }), cuts, async (text, places) => {
        const body = bodyOf(text)
        const bytes = requestOf(body)
        const [count, seen] = [served.length, client.received.length]
        let from = 0
        for (const at of [...places, bytes.length].toSorted((one, other) => one - other)) {
          if (at > from) socket.write(bytes.subarray(from, at))
          from = Math.max(from, at)
          await turn()
          await turn()
        }
        await until(() => client.received.slice(seen).endsWith(body), 'the answer')
        assert.deepEqual(served.slice(count), [body])
        await until(() => ended() === count + 1, 'the end of the request, for whoever waits for it')
      }),
      { numRuns: 60 },
    )
  })

  it('reaches those too who listen to the request already', async (t) => {
    const heard: string[] = []
    const { socket, served } = await serverOf(t, (req, _res, next) => {
      req.on('data', (chunk: Buffer) => heard.push(chunk.toString()))
      next()
    })
    const bytes = requestOf(bodyOf('hi'))
    socket.write(bytes.subarray(0, -10))
    await turn()
    socket.write(bytes.subarray(-10))
    await until(() => served.length === 1, 'the answer')
    assert.equal(heard.join(''), bodyOf('hi'))
  })

  for (const left of [10, bodyOf('hi').length])
    it(`runs no handler when its caller leaves before the last ${left} bytes`, async (t) => {
      const { socket, served } = await serverOf(t)
      const refused = once(socket, 'close')
      socket.write(requestOf(bodyOf('hi')).subarray(0, -left))
      await turn()
      socket.destroy()
      await refused
      await new Promise((resolve) => setTimeout(resolve, 50))
      assert.deepEqual(served, [])
    })
})

const [model] = catalog.models.keys()
const SMALL = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] })
const LARGE = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi '.repeat(30_000) }] })

const read = (): RequestHandler => readRequest({ catalog })

/** Reads the whole body, and keeps it where no parser looks for it. */
const rawBody: RequestHandler = (req, _res, next) => {
  let text = ''
  req.on('data', (chunk) => {
    text += chunk
  })
  req.on('end', () => {
    Object.assign(req, { rawBody: text })
    next()
  })
}

const decoding: RequestHandler = (req, _res, next) => {
  req.setEncoding('utf8')
  next()
}

/** Chains whose order is the operator's mistake, and what the log says. */
const WRONG: readonly [what: string, chain: () => RequestHandler[], told: RegExp][] = [
  [
    'one that drops the body',
    () => [(req, _res, next) => void req.resume().on('end', next), read()],
    /^readRequest: .*mount readRequest before/,
  ],
  ['one that keeps the body to itself', () => [rawBody, read()], /^readRequest: .*mount readRequest before/],
  ['one that decodes the body', () => [decoding, read()], /^readRequest: .*setEncoding\(\)/],
  ['another readRequest', () => [read(), read()], /^readRequest: .*, and once/],
  [
    'readRequest before express.json',
    () => [read(), express.json({ limit: '1mb' })],
    /^a middleware before the body parser/,
  ],
]

describe('a body that another middleware has read before', () => {
  for (const [what, chain, told] of WRONG)
    for (const [size, body] of Object.entries({ small: SMALL, large: LARGE }))
      it(`${what}, ${size}: the answer is a 500, the log says what to mount, and no handler runs`, async (t) => {
        const logger = recordingLogger()
        let runs = 0
        const app = await serveApp((app) => {
          app.use(...chain())
          app.post('/v1/chat/completions', (_req, res) => {
            runs++
            res.json({})
          })
          app.use(errorEnvelope({ logger }))
        })
        t.after(app.close)
        for (const sent of [1, 2]) {
          const res = await fetch(`${app.url}/v1/chat/completions`, {
            ...{ method: 'POST', body, signal: AbortSignal.timeout(5000) },
            headers: { 'content-type': 'application/json' },
          })
          if (what === 'readRequest before express.json' && res.status === 200) continue
          assert.deepEqual(
            [res.status, envelopeIn(await res.json()).error.code],
            [500, 'internal_error'],
            `${sent}`,
          )
          const fields = logger.lines.at(-1)?.fields ?? {}
          const { err } = fields as { err: Error }
          assert.match(err.message, told)
          assert.equal(runs, 0)
        }
      })

  it('is used where it is in req.body, or where it was put back', async (t) => {
    const peek: RequestHandler = (req, _res, next) =>
      void req.once('readable', () => {
        const bytes = req.read()
        if (bytes) req.unshift(bytes)
        next()
      })
    for (const before of [
      express.json(),
      express.text({ type: '*/*' }),
      express.raw({ type: '*/*' }),
      peek,
    ]) {
      const app = await serveApp((app) => {
        app.use(before, read())
        app.post('/v1/chat/completions', (req, res) => void res.json(callOf(req).request?.body.json))
        app.use(errorEnvelope())
      })
      t.after(app.close)
      const headers = { 'content-type': 'application/json' }
      const res = await fetch(`${app.url}/v1/chat/completions`, { method: 'POST', headers, body: SMALL })
      assert.deepEqual([res.status, await res.json()], [200, JSON.parse(SMALL)])
    }
  })
})

describe('malformed HTTP', async () => {
  // Node's own parser refuses these before there is a request, so no middleware runs and there is no envelope. A
  // caller can rely on an answer or a closed connection, nothing is sent upstream, no call is left open, and the server
  // goes on serving.

  const head = (lines: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${lines}\r\n`
  const VALID = '{"model":"chat","messages":[{"role":"user","content":"hi"}]}'

  const malformed: [name: string, bytes: string, answer: RegExp][] = [
    ['no HTTP at all', 'hello\r\n\r\n', /^HTTP\/1\.1 400 /],
    ['an unknown method', 'FETCH / HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
    ['no Host', 'GET /v1/models HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
    ['a header without a colon', head('oops\r\n'), /^HTTP\/1\.1 400 /],
    ['a length that is no number', head('content-length: x\r\n'), /^HTTP\/1\.1 400 /],
    ['two lengths', head('content-length: 1\r\ncontent-length: 2\r\n'), /^HTTP\/1\.1 400 /],
    ['a length and chunks', head('content-length: 1\r\ntransfer-encoding: chunked\r\n'), /^HTTP\/1\.1 400 /],
    ['headers over 16 KiB', head(`x: ${'x'.repeat(20_000)}\r\n`), /^HTTP\/1\.1 431 /],
    ['an Expect that nobody can meet', head('expect: miracles\r\ncontent-length: 0\r\n'), /^HTTP\/1\.1 417 /],
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', /^$/],
  ]

  const { upstream, gateway } = await suiteGateway()

  /** Sends bytes, ends its side, and resolves with all that came back. */
  function send(bytes: string): Promise<string> {
    const { port, hostname } = new URL(gateway.url)
    return new Promise((resolve) => {
      let answer = ''
      const socket = connect(Number(port), hostname)
      socket.on('data', (data) => {
        answer += data.toString()
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve(answer))
      socket.end(bytes)
    })
  }

  for (const [name, bytes, answer] of malformed) {
    it(`${name}: refused by Node itself`, async () => {
      assert.match(await send(bytes), answer)
      assert.equal(upstream.requests.length, 0)
    })
  }

  for (const [name, bytes] of [
    ['a body shorter than its length', `${head('content-length: 500\r\n')}${VALID}`],
    ['a chunked body without an end', `${head('transfer-encoding: chunked\r\n')}ff\r\n${VALID}`],
    ['a chunk size that is no number', `${head('transfer-encoding: chunked\r\n')}zz\r\n${VALID}`],
  ] as const) {
    it(`${name}, from a caller that then closes: nothing is sent upstream and no call stays open`, async () => {
      await send(bytes)
      assert.equal(upstream.requests.length, 0)
      while (gateway.openCalls.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
      assert.deepEqual(gateway.logged, [])
    })
  }

  it('is forgotten at once: the next request is served', async () => {
    assert.equal((await gateway.post('/v1/chat/completions', VALID)).status, 200)
  })
})
