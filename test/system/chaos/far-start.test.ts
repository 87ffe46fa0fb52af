import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { farServer } from '../../support/far-server.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { paidGateways, pay, shutDown } from './paid-gateways.ts'

const ROUND_TRIP_MS = 100
/** Half of it is for a busy machine. */
const EMPTY_WITHIN_MS = 20_000
const KNOWN_WITHIN_MS = 12_000

/** Starts a gateway, makes a call, and returns after what time it was ready. */
async function startedAfter(t: TestContext, databaseUrl: string): Promise<number> {
  const config = { accounts: [{ id: 'acme', balance: '10' }], keys: [{ id: 'k', account: 'acme' }] }
  const { start } = await paidGateways(t, databaseUrl, { ...config, price: { perRequest: '0.01' } }, (res) =>
    chatAnswer(res),
  )
  const began = performance.now()
  const gateway = await start()
  const ms = performance.now() - began
  const answer = await pay(gateway, { text: 'first', key: 'k', idempotencyKey: `first at ${began}` })
  assert.equal(answer?.status, 200, answer?.text)
  await shutDown([gateway])
  return ms
}

describe('a gateway whose Postgres is far away', { skip: WITHOUT_POSTGRES }, () => {
  it('is soon ready, on a new database and on a known one, and serves its first call', {
    timeout: 120_000,
  }, async (t) => {
    const postgres = await startPostgres()
    t.after(() => postgres.close())
    const far = await farServer(postgres.port, ROUND_TRIP_MS)
    t.after(() => far.close())
    const url = new URL(await postgres.createDatabase())
    url.port = `${far.port}`
    const [empty, known] = [await startedAfter(t, url.href), await startedAfter(t, url.href)]
    t.diagnostic(
      `ready after ${Math.round(empty)} ms on an empty database, ${Math.round(known)} ms on a known one`,
    )
    assert.ok(empty < EMPTY_WITHIN_MS, `empty: ${empty} ms`)
    assert.ok(known < KNOWN_WITHIN_MS, `known: ${known} ms`)
  })
})
