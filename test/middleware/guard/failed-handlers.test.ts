import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import {
  billingGuard,
  callOf,
  errorEnvelope,
  guard,
  idempotency,
  LeasePool,
  MemoryLedger,
} from '../../../lib/index.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { serveApp } from '../../support/app-server.ts'

/** As in the guide of Express. */
const ownErrors: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent) next(error)
  else res.status(500).json({ error: 'oops' })
}
const noRoute: RequestHandler = (_req, res) => {
  if (!res.headersSent) res.status(404).json({ error: 'no route' })
}
const later = (): Promise<'allow'> => new Promise((resolve) => setTimeout(resolve, 20, 'allow'))

const HANDLERS = [
  ['Express’s own', undefined],
  ['one of the app', ownErrors],
  ['errorEnvelope', errorEnvelope()],
] as const

async function answerOf(
  t: TestContext,
  handler: RequestHandler,
  errors?: ErrorRequestHandler,
): Promise<Response> {
  const served = await serveApp((app) => {
    app.set('env', 'test')
    app.use(guard({ output: later }))
    app.get('/', handler)
    app.use(noRoute)
    if (errors) app.use(errors)
  })
  t.after(() => served.close())
  return fetch(served.url)
}

describe('an answer that is checked while its handler fails', () => {
  for (const [name, errors] of HANDLERS) {
    it(`keeps its status and body if the handler throws after it, with ${name}`, async (t) => {
      const response = await answerOf(
        t,
        async (_req, res) => {
          res.json({ sold: true })
          throw new Error('the audit log failed')
        },
        errors,
      )
      assert.deepEqual([response.status, await response.text()], [200, '{"sold":true}'])
    })

    it(`keeps its status and body if the handler goes on after it, with ${name}`, async (t) => {
      const response = await answerOf(
        t,
        (_req, res, next) => {
          res.json({ sold: true })
          next()
        },
        errors,
      )
      assert.deepEqual([response.status, await response.text()], [200, '{"sold":true}'])
    })

    it(`keeps the status of a stream that has ended, with ${name}`, async (t) => {
      const response = await answerOf(
        t,
        async (_req, res) => {
          res.type('text/event-stream').write('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n')
          res.end('data: [DONE]\n\n')
          throw new Error('the audit log failed')
        },
        errors,
      )
      assert.equal(response.status, 200)
      assert.match(await response.text(), /"Hi".*\[DONE\]/s)
    })

    it(`is replaced whole if the handler throws within it, with ${name}`, async (t) => {
      const response = await answerOf(
        t,
        (_req, res) => {
          res.type('json').write('{"a":1,')
          throw new Error('the database is away')
        },
        errors,
      )
      assert.equal(response.status, 500)
      assert.doesNotMatch(await response.text(), /"a":1/)
    })

    it(`is an error if it is shorter than its length, with ${name}`, async (t) => {
      const response = await answerOf(
        t,
        (_req, res) => void res.set('content-length', '10').type('txt').end('abc'),
        errors,
      )
      assert.equal(response.status, 500)
    })

    it(`is an error if the handler writes an object, with ${name}`, async (t) => {
      const response = await answerOf(
        t,
        (_req, res) => {
          res.write({ a: 1 } as never)
          res.end()
        },
        errors,
      )
      assert.equal(response.status, 500)
    })
  }

  it('is charged, and replayed with its own status', async (t) => {
    const ledger = new MemoryLedger({ accounts: [{ id: 'a', balance: '10' }] })
    const pool = new LeasePool({ ledger })
    let runs = 0
    const served = await serveApp((app) => {
      app.use(express.json(), guard({ output: later }), idempotency({ replay: true, by: () => 'x' }))
      app.use(billingGuard({ pool, reserve: () => '0.5', account: () => 'a', key: () => null }))
      app.post('/', async (req, res) => {
        runs++
        callOf(req).charge('0.5')
        res.json({ sold: true })
        throw new Error('the audit log failed')
      })
      app.use(ownErrors)
    })
    t.after(() => served.close())
    for (const replayed of [null, 'true']) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' }
      const response = await fetch(served.url, { method: 'POST', body: '{}', headers })
      assert.deepEqual([response.status, await response.text()], [200, '{"sold":true}'])
      assert.equal(response.headers.get('idempotent-replayed'), replayed)
    }
    await pool.close()
    const [wallet] = await ledger.wallets([accountWallet('a')])
    assert.deepEqual([runs, wallet?.spent], [1, 500_000_000n])
  })
})

describe('the head of an answer that is checked', () => {
  it('keeps a header that a list names several times, and the reason', async (t) => {
    const response = await answerOf(t, (_req, res) => {
      res.setHeader('Set-Cookie', 'old=1')
      res.writeHead(200, 'Fine', ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Content-Type', 'text/plain'])
      res.end('text')
    })
    assert.deepEqual(response.headers.getSetCookie(), ['a=1', 'b=2'])
    assert.deepEqual([response.statusText, await response.text()], ['Fine', 'text'])
  })

  it('may say that it is not encoded', async (t) => {
    const response = await answerOf(t, (_req, res) => void res.set('content-encoding', 'identity').json(1))
    assert.deepEqual([response.status, await response.text()], [200, '1'])
  })
})
