import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import express from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatBody, KEY, listen } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

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
    ['bytes that are no UTF-8', Buffer.from([...Buffer.from('{"model":"'), 0xc3, 0x28, 0x22, 0x7d]), /UTF-8/],
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
  const catalog = { models: new Map(), lines: [], linesOf: () => [], widestWindow: () => undefined }
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
