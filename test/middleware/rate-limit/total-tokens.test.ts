import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import type { Usage } from '../../../lib/core/operations/index.ts'
import { type LimitStore, MemoryLimitStore, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { limitedApp } from './limited-app.ts'

/** An app whose requests are estimated at 10 tokens, and whose answers use the tokens of `x-used`, half of them output, and none without that header. */
function usingApp(t: Parameters<typeof limitedApp>[0], options: Parameters<typeof limitedApp>[1]) {
  return limitedApp(t, {
    ...options,
    skip: (_req, call) => {
      call.request = { estimatedInputTokens: 10 } as never
      return false
    },
    handler: (req, res) => {
      const used = Number(req.query.used)
      if (used > 0)
        callOf(req).usage = { inputTokens: used / 2, outputTokens: used / 2 } as Partial<Usage> as Usage
      res.json({})
    },
  })
}

const asking = (used: number) => ({ path: `/v1/chat/completions?used=${used}` })

for (const [used, left] of [
  [60, '30'],
  [150, '0'],
  [0, '80'],
] as const)
  it(`"total" counts the ${used} tokens that an answer has used, so that the next request finds them`, async (t) => {
    const app = await usingApp(t, { keyTpm: 100, tokens: 'total' })
    assert.equal((await app.ask(asking(used))).status, 200)
    const next = await app.ask(asking(0))
    assert.equal(next.status, used > 100 ? 429 : 200)
    assert.equal(next.headers.get('x-ratelimit-remaining-tokens'), left)
  })

it('"total" gives back what was estimated too high', async (t) => {
  const levels = [{ name: 'all', by: () => 'all', tpm: 100 }]
  const store = new MemoryLimitStore()
  await store.book('tpm:all:all', 50, 60_000)
  const app = await usingApp(t, { levels, store, tokens: 'total' })
  assert.equal((await app.ask(asking(4))).headers.get('x-ratelimit-remaining-tokens'), '40')
  assert.equal((await app.ask(asking(0))).headers.get('x-ratelimit-remaining-tokens'), '36')
})

it('"input" counts nothing at the end of a call', async (t) => {
  const app = await usingApp(t, { keyTpm: 100, tokens: 'input' })
  await app.ask(asking(90))
  assert.equal((await app.ask(asking(0))).headers.get('x-ratelimit-remaining-tokens'), '80')
})

it('"total" is refused at construction over a store that cannot book', () => {
  const { admit, hold, release } = new MemoryLimitStore()
  const store: LimitStore = { admit, hold, release }
  assert.throws(() => rateLimit({ store, tokens: 'total' }), /method "book"/)
})
