import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { HeldClaim, momentNow } from '../../../lib/middleware/idempotency/held-claim.ts'
import { UnconfirmedClaims } from '../../../lib/middleware/idempotency/unconfirmed-claims.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from './faked-clock.ts'

/** Three claims, of which those named in `failing` cannot be settled, and each of which takes 100 ms. */
function claimsOf(t: TestContext) {
  const clock = clockOf(t)
  const logger = recordingLogger()
  const asked: string[] = []
  const failing = new Set<string>()
  const guard = { away: false }
  const ask = async ({ id }: HeldClaim) => {
    asked.push(id)
    clock.pass(100)
    if (failing.has(id)) throw new Error(`${id} fails`)
  }
  const claims = new UnconfirmedClaims({ guard: guard as unknown as StoreGuard, logger, ask })
  for (const id of ['a', 'b', 'c']) claims.add(new HeldClaim({ id, owner: `req_${id}` }, 1, momentNow()))
  return { claims, asked, failing, guard, logger }
}

describe('claims that are asked for again', () => {
  it('are as many as there is time for, the others next time', async (t) => {
    const { claims, asked } = claimsOf(t)
    await claims.askAll(150)
    assert.deepEqual([asked, claims.size], [['a', 'b'], 1])
    await claims.askAll(0)
    assert.deepEqual([asked, claims.size], [['a', 'b', 'c'], 0])
  })

  it('are all of them where there is time', async (t) => {
    const { claims, asked } = claimsOf(t)
    await claims.askAll(200)
    assert.deepEqual([asked, claims.size], [['a', 'b', 'c'], 0])
  })

  it('come last the next time where they fail, and are told of once', async (t) => {
    const { claims, asked, failing, logger } = claimsOf(t)
    failing.add('a')
    await claims.askAll(0)
    await claims.askAll(1000)
    assert.deepEqual(asked, ['a', 'b', 'c', 'a'])
    assert.deepEqual(
      [...claims].map(({ id }) => id),
      ['a'],
    )
    assert.deepEqual(
      logger.lines.map(({ fields, message }) => [fields.requestId, message]),
      [['req_a', 'idempotency: a claim cannot be settled yet']],
    )
  })

  it('are left where the store is away, which tells of that itself', async (t) => {
    const { claims, asked, failing, guard, logger } = claimsOf(t)
    failing.add('a')
    guard.away = true
    await claims.askAll(1000)
    assert.deepEqual([asked, claims.size, logger.lines], [['a'], 3, []])
  })

  it('are not settled by themselves where that fails', async (t) => {
    const { claims, failing } = claimsOf(t)
    const [first] = claims
    assert.ok(first)
    failing.add('a')
    await assert.rejects(claims.ask(first), /a fails/)
    assert.equal(claims.size, 3)
  })
})
