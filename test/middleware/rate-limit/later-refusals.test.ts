import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { limitedApp } from './limited-app.ts'

const refuseWith =
  (code: ErrorCode): RequestHandler =>
  (req, _res, next) =>
    next(callOf(req).refuse(code))

/** The refusals that a request may still meet after its admission, by the step that sends them. */
const LATER: Record<string, RequestHandler> = {
  'billingGuard: insufficient_balance': refuseWith('insufficient_balance'),
  'billingGuard: key_quota_exhausted': refuseWith('key_quota_exhausted'),
  'billingGuard: billing_unavailable': refuseWith('billing_unavailable'),
  'route: no_candidate': refuseWith('no_candidate'),
  'route: circuit_open': refuseWith('circuit_open'),
  'route: upstream_rate_limited': refuseWith('upstream_rate_limited'),
  'route: all_candidates_failed': refuseWith('all_candidates_failed'),
  'route: empty_completion': refuseWith('empty_completion'),
  'a handler that throws': () => {
    throw new Error('unforeseen')
  },
  'a handler that cuts the connection': (_req, res) => void res.socket?.destroy(),
}

describe('an admitted request that a later step ends gives back', () => {
  for (const [name, later] of Object.entries(LATER)) {
    it(`its slot, and neither its request nor its tokens: ${name}`, async (t) => {
      const app = await limitedApp(t, { concurrency: 1, keyRpm: 3, rpm: 9, keyTpm: 30, tpm: 90, later })
      // With one slot, each but the first gets in only because the one before gave it back.
      for (let i = 0; i < 3; i++) {
        const code = await app.ask({ tokens: 10 }).then(
          ({ envelope }) => envelope.error.code ?? 'none',
          () => 'cut',
        )
        assert.doesNotMatch(code, /limited$/.test(name) ? /concurrency_limited/ : /limited$/)
        await new Promise((resolve) => setImmediate(resolve))
        while (!app.calls[i]?.ended) await new Promise((resolve) => setImmediate(resolve))
      }
      const refused = await app.ask({ tokens: 10 })
      assert.equal(refused.envelope.error.code, 'rate_limited')
      assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '0')
      assert.equal(refused.headers.get('x-ratelimit-remaining-tokens'), '0')
      assert.equal(app.handled, 0)
    })
  }

  it('takes nothing from a request that an earlier step refused', async (t) => {
    const app = await limitedApp(t, {
      keyRpm: 1,
      levels: [
        {
          name: 'key',
          by: (req) => {
            const refusal =
              req.headers['x-key'] === 'bad' ? callOf(req).refuse('invalid_credential') : undefined
            if (refusal) throw refusal
            return 'everybody'
          },
          rpm: 1,
        },
      ],
    })
    assert.equal((await app.ask({ key: 'bad' })).status, 401)
    assert.equal((await app.ask()).status, 200)
    assert.equal((await app.ask()).status, 429)
  })
})
