import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import express from 'express'
import { ERROR_CODES, type ErrorCode, GatewayError } from '../../../lib/core/errors/index.ts'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { DatabaseTimeout } from '../../../lib/stores/sql/driver/postgres/database-timeout.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type AppServer, rawClient, recordingLogger, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const logger = recordingLogger()
let app: AppServer
let behind = 0
let fault: () => unknown = () => undefined

const cleanUp = cleaningUp()
before(async () => {
  app = await serveApp((app) => {
    app.use(beginCall({ logger }))
    app.post('/v1/json', express.json({ limit: 100 }), (_req, res) => {
      behind++
      res.json({})
    })
    app.get('/v1/params/:id', (_req, res) => void res.json({}))
    app.get('/v1/throws', () => {
      throw fault()
    })
    app.get('/v1/rejects', () => Promise.reject(fault()))
    app.get('/v1/passes-on', (_req, _res, next) => next(fault()))
    app.use(unknownPath(), errorEnvelope())
  })
  cleanUp.after(() => app.close())
})
beforeEach(() => {
  logger.lines.length = 0
  behind = 0
})

async function expectError(res: Response, code: ErrorCode, message?: string): Promise<void> {
  const body = await envelopeOf(res)
  assert.equal(body.error.code, code)
  assert.equal(res.status, ERROR_CODES[code].status)
  assert.equal(res.headers.get('x-request-id'), body.request_id)
  assert.equal(body.error.message, message ?? ERROR_CODES[code].message)
}

describe('errors of Express and its body parser', () => {
  const post = (body: string | Buffer, headers: Record<string, string> = {}) =>
    fetch(`${app.url}/v1/json`, {
      method: 'POST',
      body: new Uint8Array(Buffer.from(body)),
      headers: { 'content-type': 'application/json', ...headers },
    })

  it('broken JSON is an invalid_request that does not repeat the body', async () => {
    await expectError(await post('{"secret": oops'), 'invalid_request', 'The request body is not valid JSON.')
    await expectError(await post('"just text"'), 'invalid_request', 'The request body is not valid JSON.')
    assert.equal(behind, 0)
  })

  it('a body over the limit is request_too_large', async () => {
    await expectError(await post(JSON.stringify({ a: 'x'.repeat(200) })), 'request_too_large')
    assert.equal(behind, 0)
  })

  it('an unknown encoding or charset is an invalid_request', async () => {
    const encoding = 'The content encoding of the body is not supported.'
    await expectError(await post('{}', { 'content-encoding': 'zip' }), 'invalid_request', encoding)
    const charset = await post('{}', { 'content-type': 'application/json; charset=ebcdic' })
    await expectError(charset, 'invalid_request', 'The body must be encoded in UTF-8.')
    const notGzip = await post('{}', { 'content-encoding': 'gzip' })
    assert.equal(notGzip.status, 400)
    assert.equal((await envelopeOf(notGzip)).error.code, 'invalid_request')
    assert.equal(behind, 0)
  })

  it('a path that cannot be decoded is an invalid_request', async () => {
    await expectError(await fetch(`${app.url}/v1/params/%E0%A4%A`), 'invalid_request')
  })

  it('nothing of it is logged: these are the caller’s mistakes', async () => {
    await post('{')
    await fetch(`${app.url}/v1/params/%`)
    assert.deepEqual(logger.lines, [])
  })
})

describe('unknown exceptions', () => {
  for (const way of ['throws', 'rejects', 'passes-on']) {
    const get = (thrown: unknown) => {
      fault = () => thrown
      return fetch(`${app.url}/v1/${way}`)
    }

    it(`a handler that ${way} an Error: internal_error, the stack in the log only`, async () => {
      const error = new Error('password=hunter2')
      const res = await get(error)
      await expectError(res, 'internal_error')
      assert.equal(logger.lines.length, 1)
      const { level, fields } = logger.lines[0]!
      assert.equal(level, 'error')
      assert.equal(fields.err, error)
      assert.equal(fields.requestId, res.headers.get('x-request-id'))
    })

    for (const thrown of ['hunter2', { password: 'hunter2' }, 42, Symbol('hunter2')]) {
      it(`a handler that ${way} ${String(thrown)}: internal_error, logged`, async () => {
        await expectError(await get(thrown), 'internal_error')
        assert.equal(logger.lines[0]?.fields.err, thrown)
      })
    }

    // Express takes a falsy value for "no error" in next() and throw: the request then reaches the end of the chain.
    for (const thrown of [undefined, null, false, 0, '']) {
      it(`a handler that ${way} ${JSON.stringify(thrown) ?? 'undefined'}: an envelope all the same`, async () => {
        await expectError(await get(thrown), way === 'rejects' ? 'internal_error' : 'not_found')
      })
    }

    it(`a handler that ${way} a GatewayError: that error, unlogged`, async () => {
      await expectError(await get(new GatewayError('content_filtered')), 'content_filtered')
      assert.deepEqual(logger.lines, [])
    })
  }
})

describe('the failure of a store', () => {
  for (const [what, error] of [
    ['whose connection is refused', Object.assign(new Error('connect failed'), { code: 'ECONNREFUSED' })],
    ['whose connection is cut', Object.assign(new Error('read failed'), { code: 'ECONNRESET' })],
    ['that is away', new StoreAway('limits did not answer in 250 ms')],
    ['that is going down', Object.assign(new Error('terminating connection'), { code: '57P01' })],
    ['that has no connections left', Object.assign(new Error('too many clients already'), { code: '53300' })],
    ['whose password is another one', Object.assign(new Error('authentication failed'), { code: '28P01' })],
    ['whose certificate has expired', Object.assign(new Error('expired'), { code: 'CERT_HAS_EXPIRED' })],
    ['whose disk is full', Object.assign(new Error('database or disk is full'), { errcode: 13 })],
    ['whose disk fails', Object.assign(new Error('disk I/O error'), { errcode: 778 })],
    ['that is late', new DatabaseTimeout('Postgres did not answer within 5500 ms')],
  ] as const)
    it(`${what}: is a warning without a stack`, async () => {
      fault = () => error
      const res = await fetch(`${app.url}/v1/throws`)
      await expectError(res, 'internal_error')
      const about = { requestId: res.headers.get('x-request-id'), method: 'GET', path: '/v1/throws' }
      const message = 'a request failed because a store gave no answer'
      assert.deepEqual(logger.lines, [
        { level: 'warn', message, fields: { reason: error.message, ...about } },
      ])
    })
})

describe('an error of this package', () => {
  const cause = new Error('the disk is full')
  for (const [what, error, logged] of [
    ['an internal_error', new GatewayError('internal_error'), 'itself'],
    ['an internal_error with a cause', new GatewayError('internal_error', { cause }), cause],
    ['one whose cause is in the log', new GatewayError('internal_error', { cause, foreseen: true }), null],
    ['another 5xx', new GatewayError('upstream_overloaded', { cause }), null],
  ] as const)
    it(`${what}: ${logged === null ? 'is not logged' : 'is logged once, with its call'}`, async () => {
      fault = () => error
      const res = await fetch(`${app.url}/v1/throws?key=sk-secret`)
      await expectError(res, error.code)
      const line = {
        level: 'error',
        message: 'unforeseen error',
        fields: {
          err: logged === 'itself' ? error : logged,
          requestId: res.headers.get('x-request-id'),
          method: 'GET',
          path: '/v1/throws',
        },
      }
      assert.deepEqual(logger.lines, logged === null ? [] : [line])
    })

  it('goes to the logger of errorEnvelope where it has one, and not to that of the call', async (t) => {
    const own = recordingLogger()
    const other = await serveApp((app) => {
      app.use(beginCall({ logger }), () => {
        throw cause
      })
      app.use(errorEnvelope({ logger: own }))
    })
    t.after(() => other.close())
    assert.equal((await fetch(other.url)).status, 500)
    assert.deepEqual([own.lines.map(({ fields }) => fields.err), logger.lines], [[cause], []])
  })
})

describe('errors that carry a status', () => {
  const get = (thrown: object) => {
    fault = () => thrown
    return fetch(`${app.url}/v1/throws`)
  }
  const httpError = (status: number, message: string, extra: object = {}) =>
    Object.assign(new Error(message), { status, statusCode: status, expose: status < 500, ...extra })

  it('a 4xx speaks with its own text where it is exposed', async () => {
    await expectError(await get(httpError(400, 'Name the city.')), 'invalid_request', 'Name the city.')
    await expectError(await get(httpError(404, 'No such town.')), 'not_found', 'No such town.')
    assert.deepEqual(logger.lines, [])
  })

  it('a 429 has Retry-After, its own or the least', async () => {
    const told = await get(httpError(429, 'Slow down.', { headers: { 'retry-after': 9 } }))
    assert.equal(told.headers.get('retry-after'), '9')
    assert.equal((await get(httpError(429, 'Slow down.'))).headers.get('retry-after'), '1')
  })

  it('a 5xx never speaks with its own text, and is logged whatever it is', async () => {
    for (const [status, code] of [
      [500, 'internal_error'],
      [501, 'internal_error'],
      [502, 'upstream_error'],
      [503, 'upstream_overloaded'],
      [504, 'upstream_timeout'],
    ] as const) {
      logger.lines.length = 0
      const error = httpError(status, 'db-7 is down', { expose: true })
      await expectError(await get(error), code)
      assert.equal(logger.lines[0]?.fields.err, error)
    }
  })

  it('a whole range of statuses ends in envelopes of the same class', async () => {
    for (let status = 400; status <= 599; status += 7) {
      const res = await get(httpError(status, 'secret', { expose: false }))
      const body = await envelopeOf(res)
      assert.equal(Math.floor(res.status / 100), Math.floor(status / 100))
      assert.equal(body.request_id, res.headers.get('x-request-id'))
      assert.doesNotMatch(JSON.stringify(body), /secret/)
    }
  })
})

describe('the connection after a refusal', () => {
  const head = (path: string, headers: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`

  it('serves the next request when little of the body is left, or nothing', async () => {
    const small = `${head('/v1/nowhere', 'Content-Length: 5\r\n')}hello`
    const client = rawClient(
      app.port,
      `GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n${small}GET /v1/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    const received = await client.end()
    assert.equal(received.match(/HTTP\/1\.1 404/g)?.length, 3)
    assert.equal(received.match(/connection: close/gi)?.length, 1)
  })

  it('is closed when much of the body, or an unknown part, is left: answered at once, read to its end', async () => {
    for (const [headers, rest] of [
      ['Content-Length: 100000\r\n', 'x'.repeat(100_000)],
      ['Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ] as const) {
      const client = rawClient(app.port, head('/v1/nowhere', headers))
      await client.until('"code":"not_found"')
      client.socket.write(rest)
      const received = await client.end()
      assert.match(received, /^HTTP\/1\.1 404/)
      assert.match(received, /connection: close/i)
    }
  })
})
