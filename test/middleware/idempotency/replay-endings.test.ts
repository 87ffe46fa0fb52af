import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { until } from '../../support/until.ts'
import { payments, untilAnswered } from './payments-app.ts'

describe('idempotency({ replay: true })', () => {
  for (const [name, end] of Object.entries({
    answers: (_req, res) => void res.status(201).json({ paid: true }),
    throws: () => {
      throw new Error('card processor')
    },
  } satisfies Record<string, RequestHandler>)) {
    it(`keeps the answer of a handler that ${name} after its caller left`, async (t) => {
      const gone = Promise.withResolvers<void>()
      const app = await payments(t, async (req, res, next) => {
        await once(req.socket, 'close')
        await sleep(5)
        gone.resolve()
        return (end as RequestHandler)(req, res, next)
      })
      const leaving = new AbortController()
      const left = app.pay('a', { signal: leaving.signal }).catch(() => undefined)
      await until(() => app.runs === 1)
      leaving.abort()
      await left
      await gone.promise
      const again = await untilAnswered(() => app.pay('a'))
      assert.equal(again.status, name === 'throws' ? 500 : 201)
      assert.match(await again.text(), name === 'throws' ? /internal_error/ : /paid/)
      assert.equal(again.headers.get('idempotent-replayed'), 'true')
      assert.equal(app.runs, 1)
    })
  }

  it('does not run again what broke off, and says that its answer was not kept, without a word of a call log', async (t) => {
    const app = await payments(t, (_req, res, next) => {
      res.write('half an ')
      next(new Error('broken off'))
    })
    await assert.rejects(app.pay('a').then((res) => res.text()))
    const again = await untilAnswered(() => app.pay('a'))
    assert.equal(again.status, 409)
    const text = await again.text()
    assert.match(text, /idempotency_key_replayed/)
    assert.doesNotMatch(text, /call log/)
    assert.equal(app.runs, 1)
  })

  it('does not give an answer again that ended before the length that it declared, as that of a broken proxy', async (t) => {
    const app = await payments(t, (_req, res) => {
      res.set({ 'content-length': '10', connection: 'close' })
      res.write('half an ')
      res.end()
    })
    await assert.rejects(app.pay('a').then((res) => res.text()))
    const again = await untilAnswered(() => app.pay('a'))
    assert.equal(again.status, 409)
    assert.match(await again.text(), /idempotency_key_replayed/)
    assert.equal(app.runs, 1)
  })

  for (const [what, broken] of Object.entries({
    'an object as its body': (_req, res) => void res.status(201).end({ paid: true } as never),
    'an object as a piece of it': (_req, res) => void res.status(201).write({ paid: true } as never),
    'a header of two lines': (_req, res) => void res.writeHead(201, { 'x-paid': 'a\nb' }),
    'a reason that is no Latin-1': (_req, res) => void res.writeHead(201, '大'),
  } satisfies Record<string, RequestHandler>))
    it(`gives again what was answered in place of one that Node refuses: ${what}`, async (t) => {
      const app = await payments(t, broken)
      const first = await app.pay('a')
      const again = await app.pay('a')
      for (const answer of [first, again]) {
        assert.deepEqual([answer.status, answer.headers.get('x-paid')], [500, null])
        assert.match(await answer.text(), /internal_error/)
      }
      assert.equal(again.headers.get('idempotent-replayed'), 'true')
      assert.equal(app.runs, 1)
    })

  it('does not run again an answer that is larger than its limit', async (t) => {
    const app = await payments(t, (req, res) => void res.send('x'.repeat(Number(req.get('x-size')))), {
      answerLimitBytes: 1000,
    })
    for (const size of ['1000', '1001']) {
      assert.equal((await app.pay(size, { headers: { 'x-size': size } })).status, 200)
      const again = await app.pay(size, { headers: { 'x-size': size } })
      assert.equal(again.status, size === '1000' ? 200 : 409)
    }
    assert.equal(app.runs, 2)
  })

  it('keeps a bounded number of answers in memory; the key of another stays used up', async (t) => {
    const store = new MemoryIdempotencyStore({ maxAnswerLength: 2500 })
    const app = await payments(t, (_req, res) => void res.send('x'.repeat(1000)), { store })
    for (const key of ['a', 'b', 'c']) await app.pay(key)
    const again: number[] = []
    for (const key of ['a', 'b', 'c']) again.push((await app.pay(key)).status)
    assert.deepEqual(again, [409, 200, 200])
    assert.equal(app.runs, 3)
  })
})
