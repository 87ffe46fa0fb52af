import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import type { RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { until } from '../../support/until.ts'
import { payments, untilAnswered } from './payments-app.ts'

/** No other timer has this time. */
const HANDLER_MS = 123_457

/** The timers that run for a handler without its caller. Each retains its call. */
function lateTimers(t: TestContext): ReadonlySet<NodeJS.Timeout> {
  const open = new Set<NodeJS.Timeout>()
  const { setTimeout, clearTimeout } = globalThis
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    const timer = setTimeout(run, ms)
    if (ms === HANDLER_MS) open.add(timer)
    return timer
  })
  t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout | undefined) => {
    if (timer) open.delete(timer)
    clearTimeout(timer)
  })
  return open
}

describe('a handler that answers without its caller', () => {
  const ENDS: Readonly<Record<string, RequestHandler>> = {
    'a success': (_req, res) => void res.status(201).json({ paid: true }),
    'an error': (_req, res) => void res.status(402).json({ paid: false }),
    'a status that frees the key': (_req, res) => void res.status(503).json({ paid: false }),
    'an exception': () => {
      throw new Error('card processor')
    },
  }

  for (const replay of [false, true])
    for (const [name, end] of Object.entries(ENDS))
      it(`leaves no timer behind, which would retain its call: ${name}${replay ? ', with replay' : ''}`, async (t) => {
        const open = lateTimers(t)
        const left = Promise.withResolvers<void>()
        const app = await payments(
          t,
          async (req, res, next) => {
            if (app.runs > 1) return void res.json({})
            await once(res, 'close')
            await left.promise
            return end(req, res, next)
          },
          { replay, handlerMs: HANDLER_MS },
        )
        const leaving = new AbortController()
        const asked = app.pay('a', { signal: leaving.signal }).catch(() => undefined)
        await until(() => app.runs === 1)
        leaving.abort()
        await asked
        await until(() => open.size === 1)
        left.resolve()
        await untilAnswered(() => app.pay('a'))
        assert.equal(open.size, 0)
      })

  it('leaves none behind where a ledger settles the claim', async (t) => {
    const open = lateTimers(t)
    const left = Promise.withResolvers<void>()
    const app = await payments(
      t,
      async (req, res) => {
        const call = callOf(req)
        call.onSettle(() => {
          if (call.idempotency?.claim) call.idempotency.claim.state = 'settling'
        })
        await once(res, 'close')
        await left.promise
        res.json({ paid: true })
      },
      { replay: false, settledBy: 'ledger', handlerMs: HANDLER_MS },
    )
    const leaving = new AbortController()
    const asked = app.pay('a', { signal: leaving.signal }).catch(() => undefined)
    await until(() => app.runs === 1)
    leaving.abort()
    await asked
    await until(() => open.size === 1)
    left.resolve()
    await until(() => open.size === 0)
  })
})
