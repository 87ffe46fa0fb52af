import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BACKENDS } from '../../stores/sql/postgres-database.ts'
import type { Exchange } from '../../support/exchange.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { seededRandom } from './measures.ts'
import { booksOf, type PaidCall, type PaidConfig, paidGateways, pay, shutDown } from './paid-gateways.ts'

const CALLS = 300
const FIT = 90
/** 95 % of what fits. */
const AT_LEAST = 86

/** Spec 7.3: the first delay, doubled each time, at most three times. */
const BACKOFF_MS = 1000
const RETRIES = 3

const callsOf = (extra: Partial<PaidCall> = {}): PaidCall[] =>
  Array.from({ length: CALLS }, (_, i) => ({ text: `call ${i}`, key: 'k', ...extra }))

const ofStatus = (answers: readonly Exchange[], wanted: number) =>
  answers.filter(({ status }) => status === wanted)

const codeOf = ({ status, errorCode }: Exchange): string => `${status} ${errorCode}`

/** How long a call waits at least before it is refused because nobody knows whether there is money. */
const PATIENCE_MS = 900

/** How often each stands in a list. */
function tally(codes: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1)
  return [...counts].map(([code, count]) => `${count} × ${code}`).join(', ')
}

/** An answer, and how long it took. */
interface TimedExchange extends Exchange {
  readonly ms: number
}

/** Makes a call that is answered. */
async function ask(gateway: GatewayProcess, call: PaidCall): Promise<TimedExchange> {
  const startedAt = performance.now()
  const answer = await pay(gateway, call)
  assert.ok(answer, 'every call is answered')
  return { ...answer, ms: performance.now() - startedAt }
}

/** Returns the answers to one caller, which comes again as spec 7.3 says. */
async function persist(
  gateway: GatewayProcess,
  call: PaidCall,
  random: () => number,
): Promise<TimedExchange[]> {
  const answers: TimedExchange[] = []
  for (;;) {
    const answer = await ask(gateway, call)
    answers.push(answer)
    if (answer.status !== 503 || answers.length > RETRIES) return answers
    await sleep(BACKOFF_MS * 2 ** (answers.length - 1) * (0.8 + 0.4 * random()))
  }
}

/** Asks one by one until every process answers that nothing fits, and returns the answers. */
async function askFurther(gateways: readonly GatewayProcess[], call: PaidCall): Promise<TimedExchange[]> {
  const answers: TimedExchange[] = []
  for (const [i, gateway] of gateways.entries()) {
    for (let asked = 0; ; asked++) {
      assert.ok(asked < 300, 'at last nothing more fits')
      const answer = await ask(gateway, { ...call, text: `further ${i} ${asked}` })
      answers.push(answer)
      if (answer.status === 402) break
      if (answer.status === 503) await sleep(100)
    }
  }
  return answers
}

/** Two processes, all calls at once, and what comes until nothing more fits. */
async function spendAll(t: TestContext, url: string, config: PaidConfig, calls: readonly PaidCall[]) {
  const usage = { prompt_tokens: 7, completion_tokens: 10, total_tokens: 17 }
  const world = await paidGateways(t, url, config, async (res) => {
    await sleep(100)
    chatAnswer(res, 'Hello', { usage })
  })
  const gateways = await Promise.all([world.start(), world.start()])
  const random = seededRandom(90)
  const told = await Promise.all(calls.map((call, i) => persist(gateways[i % 2]!, call, random)))
  const further = await askFurther(gateways, calls[0]!)
  await shutDown(gateways)
  // A machine so slow that commits wait for half a second has the gateways refuse calls, and log it. Where it is only calls
  // that wait, each is refused when it has waited.
  const isAway = gateways.some(({ logged }) => logged.some(({ msg }) => msg === 'store is away'))
  const unsure = [...told.flat(), ...further].filter(({ errorCode }) => errorCode === 'billing_unavailable')
  const soon = unsure.filter(({ ms }) => ms < PATIENCE_MS)
  assert.ok(isAway || soon.length === 0, `${soon.length} refused at once`)
  const slow = isAway || unsure.length > 0
  const atOnce = ofStatus(
    told.map((answers) => answers[0]!),
    200,
  ).length
  const served = ofStatus([...told.flat(), ...further], 200)
  const retried = served.length - ofStatus(further, 200).length
  const refused = [...told.flat(), ...further].filter(({ status }) => status !== 200).map(codeOf)
  const usual = refused.filter((code) => code !== '503 billing_unavailable')
  t.diagnostic(
    `served ${atOnce} at once, ${retried} with retries, ${served.length} in all; ${tally(refused)}${slow ? '; slow' : ''}`,
  )

  const books = await booksOf(url)
  assert.deepEqual(books.violations, [])
  assert.deepEqual([books.leased, books.openLeases], [0n, 0], 'nothing is held any more')
  const standing = [...books.charged.keys()].filter((id) => !books.voided.has(id))
  const ids = served.map(({ requestId }) => requestId)
  assert.deepEqual(standing.sort(), ids.sort(), 'each answer is charged once, and nothing else is')
  const asked = [...world.served().values()]
  assert.ok(asked.every((times) => times === 1))
  if (!slow) assert.equal(asked.length, served.length, 'what is refused does not reach the upstream')
  return { atOnce: slow ? retried : atOnce, served: served.length, books, refused: new Set(usual) }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`300 calls at once over two processes on one ${name}`, { skip, timeout: 180_000 }, () => {
    it('an account that can afford 90 is served 90 times at most, and at least 86 times', async (t) => {
      const config = {
        accounts: [{ id: 'acme', balance: '90' }],
        keys: [{ id: 'k', account: 'acme' }],
        price: { perRequest: '1' },
      }
      const { atOnce, served, books, refused } = await spendAll(t, await url(t), config, callsOf())
      assert.ok(served <= FIT)
      assert.ok(books.spent <= books.deposited)
      assert.ok(atOnce >= AT_LEAST, `${atOnce} of ${FIT} were let through at once`)
      assert.deepEqual(refused, new Set(['503 quota_lease_exhausted', '402 insufficient_balance']))
    })

    it('a key whose quota is for 90 is served 90 times at most, and at least 86 times', async (t) => {
      const config = {
        accounts: [{ id: 'acme', balance: '1000' }],
        keys: [{ id: 'k', account: 'acme', quota: '90' }],
        price: { perRequest: '1' },
      }
      const { atOnce, served, books, refused } = await spendAll(t, await url(t), config, callsOf())
      assert.ok(served <= FIT)
      assert.ok(books.spent <= 90_000_000_000n)
      assert.ok(atOnce >= AT_LEAST, `${atOnce} of ${FIT} were let through at once`)
      assert.deepEqual(refused, new Set(['503 quota_lease_exhausted', '402 key_quota_exhausted']))
    })

    it('calls that cost a third of what is held for them are served while a whole one fits', async (t) => {
      const config = {
        accounts: [{ id: 'acme', balance: '90' }],
        keys: [{ id: 'k', account: 'acme' }],
        // Held are 30 tokens, used are 10: the 268th call leaves less than one unit.
        price: { outputPerMillion: '33333.333333333' },
      }
      const calls = callsOf({ maxTokens: 30 })
      const { atOnce, served, books, refused } = await spendAll(t, await url(t), config, calls)
      assert.ok(books.spent <= books.deposited)
      assert.ok(atOnce >= AT_LEAST, `${atOnce} were let through at once`)
      assert.equal(served, 268)
      assert.deepEqual(refused, new Set(['503 quota_lease_exhausted', '402 insufficient_balance']))
    })
  })
}
