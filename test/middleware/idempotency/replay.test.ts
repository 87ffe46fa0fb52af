import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import compression from 'compression'
import type { RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { until } from '../../support/until.ts'
import { payments } from './payments-app.ts'

const seen = async (res: Response) => ({
  status: res.status,
  body: Buffer.from(await res.arrayBuffer()).toString('hex'),
  headers: Object.fromEntries(
    [...res.headers].filter(
      ([name]) => !['date', 'x-request-id', 'transfer-encoding', 'content-length'].includes(name),
    ),
  ),
})

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0x00, 0xfe])

/** Answers of every kind. */
const ANSWERS: Record<string, RequestHandler> = {
  json: (_req, res) => void res.status(201).location('/payments/7').json({ paid: 'ümlaut \u0000 😀' }),
  'a text': (_req, res) => void res.type('text/plain; charset=utf-8').send('paid'),
  'a text in latin1': (_req, res) => void res.type('text/plain').end('gezahlt: ß', 'latin1'),
  'a buffer': (_req, res) => void res.type('png').send(png),
  'nothing, 204': (_req, res) => void res.status(204).end(),
  'a redirect': (_req, res) => void res.redirect(303, '/payments/7'),
  'a 402 of the handler': (_req, res) => void res.status(402).json({ declined: true }),
  'a 500 of the handler': (_req, res) => void res.status(500).json({ broken: true }),
  'an error that the handler throws': () => {
    throw new Error('card processor')
  },
  'a rejection of the handler': async () => {
    await sleep(1)
    throw new GatewayError('invalid_request', { message: 'No such card.' })
  },
  'a stream': (_req, res) => {
    res.writeHead(200, 'Fine', { 'Content-Type': 'application/x-ndjson', 'X-Mode': 'live' })
    res.write('{"part":1}\n')
    setTimeout(() => {
      res.write(png)
      res.end('{"part":2}\n')
    }, 5)
  },
  'a head with a list of headers': (_req, res) => {
    res.writeHead(202, ['Content-Type', 'text/plain', 'X-Mode', 'test'])
    res.end('queued')
  },
  'a head with a list that has a name twice': (_req, res) => {
    res.writeHead(202, ['Link', '</a>; rel=next', 'X-Mode', 'test', 'link', '</b>; rel=prev'])
    res.end('queued')
  },
  'a buffer that is used again': (_req, res) => {
    const own = Buffer.from('first')
    res.write(own, () => {
      own.fill('x')
      res.end(own)
    })
  },
}

describe('idempotency({ replay: true })', () => {
  for (const [name, handler] of Object.entries(ANSWERS)) {
    it(`answers a repetition as the first: ${name}`, async (t) => {
      const app = await payments(t, handler)
      const first = await app.pay('a')
      const { headers, ...rest } = await seen(first)
      assert.equal(headers['idempotent-replayed'], undefined)
      for (let i = 0; i < 2; i++) {
        const again = await app.pay('a')
        const told = await seen(again)
        assert.deepEqual(told, {
          ...rest,
          headers: {
            ...headers,
            'idempotent-replayed': 'true',
            'x-original-request-id': first.headers.get('x-request-id'),
          },
        })
        assert.notEqual(again.headers.get('x-request-id'), first.headers.get('x-request-id'))
      }
      assert.equal(app.runs, 1)
    })
  }

  for (const status of [409, 429, 503]) {
    it(`frees the key at ${status}: a repetition runs`, async (t) => {
      let fails = true
      const app = await payments(t, (_req, res) => {
        res.status(fails ? status : 200).json({ fails })
        fails = false
      })
      assert.equal((await app.pay('a')).status, status)
      assert.equal((await app.pay('a')).status, 200)
      const third = await app.pay('a')
      assert.deepEqual([third.status, third.headers.get('idempotent-replayed')], [200, 'true'])
      assert.equal(app.runs, 2)
    })
  }

  it('keeps what keepWhen says, and what it throws at', async (t) => {
    const app = await payments(t, (req, res) => void res.status(Number(req.get('x-status'))).end(), {
      keepWhen: (status) => {
        if (status === 418) throw new Error('no tea')
        return status < 500
      },
    })
    const twice = async (status: string) => {
      const headers = { 'x-status': status }
      await app.pay(status, { headers })
      return (await app.pay(status, { headers })).headers.get('idempotent-replayed')
    }
    assert.deepEqual(
      [await twice('200'), await twice('429'), await twice('500'), await twice('418')],
      ['true', 'true', null, 'true'],
    )
    assert.equal(app.logged.filter(({ message }) => /keepWhen/.test(message)).length, 1)
  })

  it('keeps an answer for which keepWhen returns a promise, and logs that it must not', async (t) => {
    const app = await payments(t, (_req, res) => void res.json({ ok: true }), {
      keepWhen: (async () => {
        throw new Error('no tea')
      }) as never,
    })
    await app.pay('a')
    assert.equal((await app.pay('a')).headers.get('idempotent-replayed'), 'true')
    assert.equal(app.runs, 1)
    const [line, ...others] = app.logged.filter(({ message }) => /keepWhen/.test(message))
    assert.match(String(line?.fields.err), /must return true or false, not a promise/)
    assert.equal(others.length, 0)
  })

  it('does not keep the refusal of another middleware, in front of which the handler did not run', async (t) => {
    const limits = rateLimit({
      levels: [{ name: 'all', by: () => 'all', rpm: 1, tpm: 1 }],
      tokens: (req) => Number(req.get('x-tokens') ?? 0),
    })
    const app = await payments(t, (_req, res) => void res.end('paid'), {}, { behind: [limits] })
    assert.equal((await app.pay('a', { headers: { 'x-tokens': '2' } })).status, 429)
    assert.equal(await (await app.pay('a')).text(), 'paid')
    const refusing: RequestHandler = (req, _res, next) => next(callOf(req).refuse('insufficient_balance'))
    let isPoor = true
    const bank = await payments(
      t,
      (_req, res) => void res.end('paid'),
      {},
      {
        behind: [(req, res, next) => (isPoor ? refusing(req, res, next) : next())],
      },
    )
    assert.equal((await bank.pay('b')).status, 402)
    isPoor = false
    assert.equal((await bank.pay('b')).status, 200)
    assert.equal(bank.runs, 1)
  })

  it('refuses other content, and a repetition while the first runs', async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const app = await payments(t, async (_req, res) => {
      await promise
      res.json({ paid: true })
    })
    const first = app.pay('a')
    await until(() => app.runs === 1)
    const during = await app.pay('a')
    assert.deepEqual([during.status, during.headers.get('retry-after')], [409, '2'])
    assert.equal((await app.pay('a', { body: '{"amount":6}' })).status, 400)
    resolve()
    assert.equal((await first).status, 200)
    assert.equal((await app.pay('a', { body: '{"amount":6}' })).status, 400)
    assert.equal((await app.pay('a')).status, 200)
    assert.equal(app.runs, 1)
  })

  it('keeps the answer as the handler gave it: compression in front compresses each for its caller', async (t) => {
    const app = await payments(
      t,
      (_req, res) => {
        res.type('text/plain').write('x'.repeat(2000))
        res.end()
      },
      {},
      { before: [compression({ threshold: 0 })] },
    )
    const plain = { 'accept-encoding': 'identity' }
    for (const headers of [{}, plain, {}]) {
      const res = await app.pay('a', { headers })
      assert.equal(res.headers.get('content-encoding'), headers === plain ? null : 'gzip')
      assert.equal(await res.text(), 'x'.repeat(2000))
    }
    assert.equal(app.runs, 1)
  })

  it('gives no cookie again, and what stands in front of it is of the repetition', async (t) => {
    let asked = 0
    const counting: RequestHandler = (_req, res, next) => {
      res.setHeader('x-asked', ++asked)
      next()
    }
    const app = await payments(
      t,
      (_req, res) => void res.cookie('session', 'secret').json({}),
      {},
      { before: [counting] },
    )
    const [first, again] = [await app.pay('a'), await app.pay('a')]
    assert.match(first.headers.get('set-cookie') ?? '', /secret/)
    assert.equal(again.headers.get('set-cookie'), null)
    assert.deepEqual([first.headers.get('x-asked'), again.headers.get('x-asked')], ['1', '2'])
  })

  it('lacks what the handler has removed of what stands in front of it, as the first', async (t) => {
    const framed: RequestHandler = (_req, res, next) => {
      res.set({ 'x-frame-options': 'DENY', 'x-front': '1' })
      next()
    }
    const app = await payments(
      t,
      (_req, res) => {
        res.removeHeader('x-frame-options')
        res.json({})
      },
      {},
      { before: [framed] },
    )
    for (const replayed of [null, 'true']) {
      const { headers } = await app.pay('a')
      const got = ['idempotent-replayed', 'x-frame-options', 'x-front'].map((name) => headers.get(name))
      assert.deepEqual(got, [replayed, null, '1'])
    }
  })

  it('logs once that callers share their keys, where callers name their users', async (t) => {
    const app = await payments(t, (_req, res) => void res.end())
    await app.pay('a')
    assert.deepEqual(app.logged, [])
    for (const key of ['b', 'c']) await app.pay(key, { headers: { authorization: 'Bearer x' } })
    assert.match(
      app.logged.map(({ message }) => message).join(),
      /^idempotency: with "replay" and without "by" [^,]*give "by"|^idempotency: .* give "by", such as .*$/,
    )
    assert.equal(app.logged.length, 1)
    const scoped = await payments(t, (_req, res) => void res.end(), {
      by: (req) => String(req.headers.authorization),
    })
    await scoped.pay('a', { headers: { authorization: 'Bearer x' } })
    await scoped.pay('a', { headers: { authorization: 'Bearer y' } })
    assert.equal(scoped.runs, 2)
    assert.deepEqual(scoped.logged, [])
  })

  it('needs the options that go together', () => {
    assert.throws(
      () => idempotency({ replay: true, settledBy: 'ledger' }),
      /"replay" needs "settledBy" to be "store"/,
    )
    assert.throws(() => idempotency({ keepWhen: () => true }), /"keepWhen" needs "replay" to be true/)
  })
})
