import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from '../../support/exchange.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { farDatabase } from './far-database.ts'
import { booksOf, type PaidConfig, paidGateways, pay, shutDown } from './paid-gateways.ts'

const NEAR_MS = 2
/** Longer than a near database may take for a claim, and two commits longer than one for charges. */
const SLOW_MS = 400
/** How long calls may be refused after the database has become slow. */
const LEARNS_MS = 3000
/** For how long it stays slow then: for more than a busy machine adds. */
const STAYS_SLOW_MS = 9000
/** A call that still waits when the database is near again has waited for longer than a near one may take. */
const CROSSES_MS = 1000
const EVERY_MS = 40
const COST = 10_000_000n

const CONFIG: PaidConfig = {
  accounts: ['acme', 'globex'].map((id) => ({ id, balance: '1000' })),
  keys: ['acme', 'globex'].map((account) => ({ id: `k-${account}`, account, quota: '500' })),
  price: { perRequest: '0.01' },
}

interface Seen {
  readonly text: string
  readonly sentAt: number
  readonly answer: Exchange
}

async function goThrough(t: TestContext): Promise<void> {
  const heldUpMs = watchHeldUp(t)
  const { near, far, server } = await farDatabase(t, NEAR_MS)
  const { served, start } = await paidGateways(t, far, CONFIG, (res) => chatAnswer(res), {
    LOG_LEVEL: 'fatal',
  })
  const gateway = await start()
  const seen: Seen[] = []
  const calls: Promise<void>[] = []
  const send = async (i: number): Promise<void> => {
    // Each account calls with an Idempotency-Key and without.
    const key = CONFIG.keys[i % 2]?.id as string
    const call = { text: `call ${i}`, key, ...(i % 4 < 2 && { idempotencyKey: randomUUID() }) }
    const sentAt = performance.now()
    const answer = await pay(gateway, call)
    assert.ok(answer, 'every call is answered')
    seen.push({ text: call.text, sentAt, answer })
  }
  const timer = setInterval(() => calls.push(send(calls.length)), EVERY_MS)
  t.after(() => clearInterval(timer))
  await sleep(2000)
  server.slowDown(SLOW_MS)
  const slowAt = performance.now()
  await sleep(LEARNS_MS + STAYS_SLOW_MS)
  server.slowDown(NEAR_MS)
  const nearAt = performance.now()
  await sleep(2000)
  clearInterval(timer)
  await Promise.all(calls)
  await shutDown([gateway])

  const refused = seen.filter(({ answer }) => answer.status !== 200)
  for (const { answer } of refused) assert.ok(answer.status === 503 || answer.status === 500, answer.text)
  const mayBeRefused = ({ sentAt }: Seen) =>
    (sentAt > slowAt - CROSSES_MS && sentAt < slowAt + LEARNS_MS + heldUpMs()) ||
    Math.abs(sentAt - nearAt) < CROSSES_MS
  const late = refused.filter((call) => !mayBeRefused(call))
  assert.deepEqual(
    late.map(({ text, answer, sentAt }) => [text, answer.errorCode, Math.round(sentAt - slowAt)]),
    [],
  )
  assert.ok(seen.length - refused.length > seen.length / 2, `${refused.length} of ${seen.length} refused`)

  const whole = seen.filter(({ answer }) => answer.status === 200)
  const bill = served()
  assert.ok(whole.every(({ text }) => bill.get(text) === 1))
  const { charged, voided, violations, spent, leased } = await booksOf(near)
  assert.deepEqual([violations, leased], [[], 0n])
  const standing = [...charged.keys()].filter((id) => !voided.has(id))
  assert.deepEqual(standing.sort(), whole.map(({ answer }) => answer.requestId).sort())
  assert.equal(spent, COST * BigInt(whole.length))
  t.diagnostic(`${whole.length} served, ${refused.length} refused`)
}

describe('a Postgres that becomes slow', { skip: WITHOUT_POSTGRES }, () => {
  it('is taken for one that is far away: calls wait, and soon none is refused', { timeout: 90_000 }, (t) =>
    goThrough(t),
  )
})
