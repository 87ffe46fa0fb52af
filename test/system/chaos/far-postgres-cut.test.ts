import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import type { Exchange } from '../../support/exchange.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { farDatabase } from './far-database.ts'
import { untilReadiness } from './ledger-gateway.ts'
import { booksOf, type PaidConfig, paidGateways, pay, shutDown } from './paid-gateways.ts'

const ROUND_TRIP_MS = 100
const CUT_MS = 10_000
const EVERY_MS = 50
const ADMIN_TOKEN = 'admin-token-0123456789'
const ACCOUNTS = ['acme', 'globex', 'initech']
const BALANCE = 1000n * 1_000_000_000n
const COST = 10_000_000n

const CONFIG: PaidConfig = {
  accounts: ACCOUNTS.map((id) => ({ id, balance: '1000' })),
  // One of them has two keys.
  keys: [...ACCOUNTS, 'acme'].map((account, i) => ({ id: `k${i}`, account, quota: '500' })),
  price: { perRequest: '0.01' },
}

interface Seen {
  readonly text: string
  readonly account: string
  readonly answer: Exchange
  /** When it was sent, and when it ended. */
  readonly sentAt: number
  readonly at: number
}

/** Calls of all keys at a steady rate, whatever becomes of them. */
function startCalls(gateway: GatewayProcess) {
  const seen: Seen[] = []
  const calls: Promise<void>[] = []
  const send = async (i: number): Promise<void> => {
    const key = CONFIG.keys[i % CONFIG.keys.length] as PaidConfig['keys'][number]
    const text = `call ${i}`
    const sentAt = performance.now()
    const answer = await pay(gateway, { text, key: key.id })
    assert.ok(answer, 'every call is answered')
    seen.push({ text, account: key.account, answer, sentAt, at: performance.now() })
  }
  const timer = setInterval(() => calls.push(send(calls.length)), EVERY_MS)
  return {
    seen,
    async stop() {
      clearInterval(timer)
      await Promise.all(calls)
    },
  }
}

async function violationsOf({ url }: GatewayProcess): Promise<unknown> {
  const response = await fetch(`${url}/admin/ledger/check`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })
  return ((await response.json()) as { violations: unknown }).violations
}

const isServed = ({ answer }: Seen): boolean => answer.status === 200

async function goThrough(t: TestContext): Promise<void> {
  const { near, far, server } = await farDatabase(t, ROUND_TRIP_MS)
  const { served, start } = await paidGateways(
    t,
    far,
    CONFIG,
    async (res) => {
      await sleep(20)
      chatAnswer(res)
    },
    { ADMIN_TOKEN, LOG_LEVEL: 'fatal' },
  )
  const gateway = await start()
  const calls = startCalls(gateway)
  const { seen } = calls
  await until(() => seen.length > 100, 'calls')
  assert.deepEqual(
    seen.filter((call) => !isServed(call)).map(({ answer }) => answer.text),
    [],
  )

  server.cut()
  const cutAt = performance.now()
  await untilReadiness(gateway, 503)
  await sleep(CUT_MS - (performance.now() - cutAt))
  server.mend()
  await untilReadiness(gateway, 200)
  const mendedAt = performance.now()
  const after = () => seen.filter(({ sentAt }) => sentAt > mendedAt)
  await until(() => after().length > 100, 'calls that are served again')
  await calls.stop()

  // The answers to refused callers name the reason, and say that another try is worthwhile.
  const refused = seen.filter((call) => !isServed(call))
  for (const { answer } of refused) {
    assert.equal(answer.status, 503, answer.text)
    assert.equal(answer.errorCode, 'billing_unavailable')
  }
  for (const account of ACCOUNTS) assert.ok(refused.some((call) => call.account === account))
  assert.deepEqual(
    after().filter((call) => !isServed(call)),
    [],
    'all are served again',
  )
  assert.deepEqual(await violationsOf(gateway), [])
  await shutDown([gateway])

  // The ledger has what the upstream answered and a caller got, and nothing else.
  const bill = served()
  const whole = seen.filter(isServed)
  assert.ok(whole.every(({ text }) => bill.get(text) === 1))
  const { charged, voided, violations, spent, leased } = await booksOf(near)
  assert.deepEqual([violations, leased], [[], 0n])
  const standing = [...charged.keys()].filter((id) => !voided.has(id))
  assert.deepEqual(standing.sort(), whole.map(({ answer }) => answer.requestId).sort())
  assert.equal(spent, COST * BigInt(whole.length))
  const db = await openDatabase(near, { readOnly: true })
  t.after(() => db.destroy())
  const wallets = await new SqlLedger(db).wallets(ACCOUNTS.map(accountWallet))
  const owed = ACCOUNTS.map((id) => COST * BigInt(whole.filter(({ account }) => account === id).length))
  assert.deepEqual(
    wallets.map((wallet) => [wallet.funds, wallet.spent]),
    owed.map((cost) => [BALANCE, cost]),
  )
  t.diagnostic(`${whole.length} served, ${refused.length} refused`)
}

describe('a Postgres far away that is cut off for ten seconds', { skip: WITHOUT_POSTGRES }, () => {
  it(
    'costs no tenant a cent: who is refused is told why, and then all are served again',
    {
      timeout: 90_000,
    },
    (t) => goThrough(t),
  )
})
