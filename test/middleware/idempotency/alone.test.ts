import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express, { type RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import {
  type IdempotencyOptions,
  idempotency,
  MemoryIdempotencyStore,
} from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { FaultyStore } from './faulty-store.ts'

interface Shop {
  /** Orders placed: bodies. */
  readonly orders: unknown[]
  order(key: string | undefined, body?: unknown, init?: RequestInit): Promise<Response>
}

/** An app of somebody who knows nothing of calls. */
async function openShop(
  t: TestContext,
  handler: RequestHandler,
  options: IdempotencyOptions = {},
  envelope = false,
): Promise<Shop> {
  const orders: unknown[] = []
  const place: RequestHandler = (req, res, next) => {
    orders.push(req.body)
    return handler(req, res, next)
  }
  const app = await serveApp((app) => {
    app.use(express.json())
    app.all('/orders', idempotency({ logger: recordingLogger(), ...options }), place)
    if (envelope) app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(() => app.close())
  return {
    orders,
    order: (key, body = { item: 1 }, { headers, ...init } = {}) =>
      fetch(`${app.url}/orders`, {
        method: 'POST',
        body: JSON.stringify(body),
        ...init,
        headers: {
          'content-type': 'application/json',
          ...(key !== undefined && { 'idempotency-key': key }),
          ...(headers as Record<string, string>),
        },
      }),
  }
}

describe('idempotency alone, before a handler of one’s own', () => {
  it('lets an answer that succeeded happen once', async (t) => {
    const shop = await openShop(t, (req, res) => void res.status(201).json({ placed: req.body }))
    const first = await shop.order('k')
    assert.equal(first.status, 201)
    assert.deepEqual(await first.json(), { placed: { item: 1 } })
    const second = await shop.order('k')
    assert.equal(second.status, 409)
    assert.equal(second.headers.get('x-original-request-id'), first.headers.get('x-request-id'))
    assert.equal((await shop.order('k', { item: 2 })).status, 400)
    assert.equal(shop.orders.length, 1)
    for (const _ of [1, 2]) assert.equal((await shop.order(undefined)).status, 201)
  })

  it('frees the key of one that was refused, that failed, or whose handler threw', async (t) => {
    const outcomes: RequestHandler[] = [
      (_req, res) => void res.status(422).json({ error: 'no' }),
      (_req, res) => void res.sendStatus(503),
      () => {
        throw new Error('at once')
      },
      async () => {
        await Promise.resolve()
        throw new Error('later')
      },
      (_req, res) => void res.sendStatus(204),
    ]
    let turn = 0
    const shop = await openShop(t, (req, res, next) => outcomes[turn++]?.(req, res, next))
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) {
      const got = await shop.order('k')
      statuses.push(got.status)
      await got.text()
    }
    assert.deepEqual(statuses, [422, 503, 500, 500, 204, 409])
    assert.equal(shop.orders.length, 5)
  })

  it('lets every way of ending an answer count', async (t) => {
    const ways: Record<string, RequestHandler> = {
      redirect: (_req, res) => void res.redirect(303, '/elsewhere'),
      end: (_req, res) => void res.end(),
      buffer: (_req, res) => void res.end(Buffer.from('é'), () => {}),
      latin1: (_req, res) => void res.end('\xe9', 'latin1'),
      pieces: (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/plain' })
        res.write('one,')
        res.write(Buffer.from('two'))
        setImmediate(() => res.end())
      },
    }
    const kept = new Map<string, string | null>()
    for (const [name, handler] of Object.entries(ways)) {
      const shop = await openShop(t, (req, res, next) => {
        const call = callOf(req)
        call.onEnd('look', () => queueMicrotask(() => kept.set(name, call.idempotency!.responseBody)))
        return handler(req, res, next)
      })
      const first = await shop.order('k', {}, { redirect: 'manual' })
      const text = await first.text()
      if (name === 'pieces') assert.equal(text, 'one,two')
      assert.equal((await shop.order('k', {})).status, 409, name)
      assert.equal(shop.orders.length, 1)
    }
    await until(() => kept.size === Object.keys(ways).length, 'the ends of the calls')
    assert.deepEqual(
      [kept.get('end'), kept.get('buffer'), kept.get('latin1'), kept.get('pieces')],
      [null, 'é', 'é', 'one,two'],
    )
  })

  it('keeps the key of a handler that goes on without its caller until it has answered', async (t) => {
    for (const outcome of [201, 500]) {
      let finish: (() => void) | undefined
      const shop = await openShop(t, (_req, res) => {
        finish = () => void res.status(outcome).json({})
      })
      const leaving = new AbortController()
      const first = shop.order('k', {}, { signal: leaving.signal }).catch(() => {})
      await until(() => finish !== undefined, 'the handler')
      leaving.abort()
      await first
      for (let i = 0; i < 3; i++) assert.equal((await shop.order('k', {})).status, 409)
      assert.equal(shop.orders.length, 1)
      const answerFirst = finish
      answerFirst?.()
      const later = shop.order('k', {})
      if (outcome === 500) {
        await until(() => shop.orders.length === 2, 'the second to run')
        finish?.()
        assert.equal((await later).status, 500)
      } else {
        const got = await later
        assert.match(await got.text(), /already ran/)
        assert.equal(shop.orders.length, 1)
      }
    }
  })

  it('frees the key at once when the handler fails after its caller left', async (t) => {
    for (const envelope of [false, true]) {
      let fail: ((error: Error) => void) | undefined
      const shop = await openShop(
        t,
        (_req, res) =>
          shop.orders.length > 1
            ? void res.sendStatus(200)
            : new Promise<void>((_, reject) => {
                fail = reject
              }),
        {},
        envelope,
      )
      const leaving = new AbortController()
      const first = shop.order('k', {}, { signal: leaving.signal }).catch(() => {})
      await until(() => fail !== undefined, 'the handler')
      leaving.abort()
      await first
      assert.equal((await shop.order('k', {})).status, 409)
      fail?.(new Error('nobody waits'))
      await new Promise((resolve) => setImmediate(resolve))
      assert.equal((await shop.order('k', {})).status, 200)
    }
  })

  it('answers an error instead of a success that could not be recorded', async (t) => {
    for (const envelope of [false, true]) {
      const store = new FaultyStore(new MemoryIdempotencyStore())
      const shop = await openShop(
        t,
        (_req, res) => void res.status(201).set('x-kept', '1').json({}),
        { store },
        envelope,
      )
      store.faults.set('complete', 'unheard')
      const first = await shop.order('k')
      assert.equal(first.status, 500)
      assert.match(await first.text(), envelope ? /"code":"internal_error"/ : /could not be recorded/)
      assert.equal(shop.orders.length, 1)
    }
  })

  it('leaves methods alone that may be repeated anyway', async (t) => {
    const shop = await openShop(t, (_req, res) => void res.json([]))
    const methods = ['GET', 'HEAD', 'OPTIONS', 'GET', 'HEAD', 'OPTIONS']
    for (const method of methods) {
      const { status } = await shop.order('k', undefined, { method, body: null })
      assert.equal(status, 200, method)
    }
    assert.equal(shop.orders.length, methods.length)
  })

  it('guards every other method, each by itself', async (t) => {
    const shop = await openShop(t, (_req, res) => void res.json([]))
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      assert.equal((await shop.order('k', {}, { method })).status, 200, method)
      assert.equal((await shop.order('k', {}, { method })).status, 409, method)
    }
    assert.equal(shop.orders.length, 4)
  })

  it('refuses a body that no parser has read, as its content is not known', async (t) => {
    const shop = await openShop(t, (_req, res) => void res.json({}))
    const got = await shop.order('k', 'x', { headers: { 'content-type': 'text/plain' } })
    assert.equal(got.status, 400)
    assert.equal(shop.orders.length, 0)
    const chunked = {
      headers: { 'content-type': 'text/plain' },
      body: new Blob(['x']).stream(),
      duplex: 'half',
    }
    assert.equal((await shop.order('k', undefined, chunked as RequestInit)).status, 400, 'of unknown length')
    assert.equal(shop.orders.length, 0)
    assert.equal((await shop.order('k', undefined, { body: null })).status, 200, 'no body is one, too')
  })

  it('keeps keys apart as the app says', async (t) => {
    const shop = await openShop(t, (_req, res) => void res.json({}), {
      by: (req) => String(req.headers['x-user']),
    })
    const by = (user: string) => shop.order('k', {}, { headers: { 'x-user': user } })
    assert.deepEqual([(await by('ann')).status, (await by('bob')).status], [200, 200])
    assert.deepEqual([(await by('ann')).status, (await by('bob')).status], [409, 409])
  })

  it('says at construction what is wrong with an option', () => {
    const wrong: [IdempotencyOptions, RegExp][] = [
      [{ claimLeaseMs: 100 }, /"claimLeaseMs"/],
      [{ keepRecordsMs: Number.POSITIVE_INFINITY }, /"keepRecordsMs"/],
      [{ handlerMs: 0 }, /"handlerMs"/],
      [{ storeTimeoutMs: -1 }, /"storeTimeoutMs"/],
      [{ answerLimitBytes: -1 }, /"answerLimitBytes"/],
      [{ by: 'all' as never }, /"by"/],
      [{ store: {} as never }, /"store"/],
      [{ settledBy: 'me' as never }, /"settledBy"/],
    ]
    for (const [options, message] of wrong)
      assert.throws(() => idempotency(options), { name: 'TypeError', message })
  })
})
