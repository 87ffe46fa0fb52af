import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import express, { type RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { callLog } from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import {
  type IdempotencyOptions,
  idempotency,
  MemoryIdempotencyStore,
} from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

/** An app with a handler behind `idempotency`, and what stands in front of it. */
async function served(
  t: TestContext,
  options: IdempotencyOptions,
  before: RequestHandler[] = [express.json()],
) {
  const logger = recordingLogger()
  const store = new MemoryIdempotencyStore()
  const claim = t.mock.method(store, 'claim')
  let runs = 0
  const app = await serveApp((app) => {
    if (before.length > 0) app.use(...before)
    app.use(idempotency({ store, logger, ...options }), (_req, res) => {
      runs++
      res.status(201).end('run')
    })
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(app.close)
  const ask = async (key: string, init: RequestInit = {}) => {
    const headers = {
      'content-type': 'application/json',
      ...(init.headers as object),
      'idempotency-key': key,
    }
    const res = await fetch(app.url, { method: 'POST', body: '{}', ...init, headers })
    const text = await res.text()
    const error = text.startsWith('{') ? JSON.parse(text).error : undefined
    return {
      status: res.status,
      headers: res.headers,
      error,
      code: error?.code,
      message: error?.message ?? '',
    }
  }
  return { ...app, ask, claim, logger, runs: () => runs }
}

describe('a key that is refused', () => {
  it('says what to do where the first still runs', async (t) => {
    const { ask, claim } = await served(t, {})
    claim.mock.mockImplementation(async ({ id, owner, fingerprint }) => ({
      owner: `not ${owner}`,
      fingerprint,
      state: 'running',
      expiresAt: Date.now() + id.length,
    }))
    const { status, headers, code } = await ask('k')
    assert.deepEqual([status, code, headers.get('retry-after')], [409, 'idempotency_key_in_use', '2'])
    assert.equal(headers.get('x-original-request-id'), null)
  })

  for (const logged of [true, false])
    it(`names the call that has run${logged ? '' : ', without a word of the log where there is none'}`, async (t) => {
      const log = logged ? [callLog({ writer: { add() {} } })] : []
      const { ask, runs } = await served(t, {}, [...log, express.json()])
      const first = await ask('k')
      const again = await ask('k')
      assert.deepEqual([first.status, again.status, again.code], [201, 409, 'idempotency_key_replayed'])
      const id = first.headers.get('x-request-id')
      assert.equal(again.headers.get('x-original-request-id'), id)
      assert.deepEqual(again.error.details, { original_request_id: id })
      const told = /^A request with this Idempotency-Key already ran; nothing was run this time\.$/
      assert.equal(told.test(again.message), !logged)
      assert.equal(runs(), 1)
    })

  it('is refused with other content before anything else is said', async (t) => {
    const { ask } = await served(t, {})
    await ask('k')
    const other = await ask('k', { body: '{"other":1}' })
    assert.deepEqual([other.status, other.code], [400, 'idempotency_key_reused'])
    assert.equal(other.headers.get('x-original-request-id'), null)
  })

  it('could not be checked: nothing was run, and the log has why', async (t) => {
    const { ask, claim, runs } = await served(t, { storeTimeoutMs: 50 })
    claim.mock.mockImplementation(async () => null as never)
    const { status, code, message } = await ask('k')
    assert.deepEqual([status, code, runs()], [500, 'internal_error', 0])
    assert.match(
      message,
      /^The Idempotency-Key could not be checked, so nothing was run\. Retry with the same key/,
    )
  })
})

describe('one key that the store refuses', () => {
  it('is no outage: the others run, and no listener is called', async (t) => {
    const changes: boolean[] = []
    const { ask, claim, runs } = await served(t, { onStoreChange: (away) => void changes.push(away) })
    claim.mock.mockImplementationOnce(async () => Promise.reject(new Error('no such column')))
    assert.equal((await ask('bad')).status, 500)
    assert.equal((await ask('good')).status, 201)
    assert.deepEqual([runs(), changes], [1, []])
  })

  it('is an outage where the store does not answer for so long, and a listener is called', async (t) => {
    const changes: boolean[] = []
    const { ask, claim } = await served(t, {
      storeTimeoutMs: 20,
      onStoreChange: (away) => void changes.push(away),
    })
    claim.mock.mockImplementationOnce(() => new Promise(() => {}))
    assert.equal((await ask('k')).status, 500)
    assert.deepEqual(changes, [true])
  })
})

describe('a request that needs no claim', () => {
  it('is one that changes nothing, or one that has been claimed in front', async (t) => {
    const logger = recordingLogger()
    const { port, ask, claim, runs } = await served(t, {}, [express.json(), idempotency({ logger })])
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'TRACE']) {
      const req = request({ port, host: '127.0.0.1', method, headers: { 'idempotency-key': '' } }).end()
      const [res] = await once(req, 'response')
      res.resume()
      assert.equal(res.statusCode, 201, method)
    }
    assert.deepEqual([claim.mock.callCount(), runs()], [0, 4])
    assert.equal((await ask('k')).status, 201)
    assert.deepEqual([claim.mock.callCount(), (await ask('k')).status], [0, 409])
  })
})

describe('a body that has not been read', () => {
  it('is a mistake of the app, unless there is none', async (t) => {
    const { ask, runs } = await served(t, {}, [])
    for (const init of [{ body: 'x' }, { body: new Blob(['x']).stream(), duplex: 'half' as const }]) {
      assert.equal((await ask('k', init)).status, 500)
    }
    assert.equal(runs(), 0)
    assert.equal((await ask('k', { body: null })).status, 201)
    assert.equal((await ask('l', { body: '' })).status, 201)
  })

  it('is a mistake of the caller where a parser has left it', async (t) => {
    const { ask, runs } = await served(t, {})
    const headers = { 'content-type': 'text/plain' }
    for (const init of [{ body: 'x' }, { body: new Blob(['x']).stream(), duplex: 'half' as const }]) {
      const { status, code, message } = await ask('k', { ...init, headers })
      assert.deepEqual([status, code, runs()], [400, 'invalid_request', 0])
      assert.match(message, /^The body was not read, .* Send it as JSON/)
    }
  })
})

describe('callers who share their keys', () => {
  const identified =
    (principal: boolean): RequestHandler =>
    (req, _res, next) => {
      if (principal) callOf(req).principal = { accountId: 'acme' } as never
      next()
    }
  for (const [name, options, headers, principal, told] of [
    ['who send a cookie', { replay: true }, { cookie: 'a=b' }, false, 1],
    ['who send a key', { replay: true }, { authorization: 'Bearer x' }, false, 1],
    ['who say nothing', { replay: true }, {}, false, 0],
    ['whose account is known', { replay: true }, { cookie: 'a=b' }, true, 0],
    ['where the app has a scope', { replay: true, by: () => 'all' }, { cookie: 'a=b' }, false, 0],
    ['where no answer is given again', {}, { cookie: 'a=b' }, false, 0],
  ] as const)
    it(`are ${told ? '' : 'not '}logged, ${name}`, async (t) => {
      const { ask, logger } = await served(t, options, [identified(principal), express.json()])
      for (const key of ['a', 'b']) await ask(key, { headers })
      assert.equal(logger.lines.length, told)
      if (told) assert.match(logger.lines[0]?.message ?? '', /all callers share their keys/)
    })

  it('have keys of their own by account, and one for all without', async (t) => {
    const account = (id: string | undefined): RequestHandler =>
      function account(req, _res, next) {
        const from = req.headers['x-account'] ?? id
        if (from) callOf(req).principal = { accountId: String(from) } as never
        next()
      }
    const { ask } = await served(t, {}, [account(undefined), express.json()])
    const by = async (name?: string) =>
      (await ask('k', { headers: name ? { 'x-account': name } : {} })).status
    assert.deepEqual(
      [await by('a'), await by('b'), await by(), await by('a'), await by('b'), await by()],
      [201, 201, 201, 409, 409, 409],
    )
  })
})
