import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import type { Exchange } from '../../support/exchange.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { seededRandom } from './measures.ts'
import { booksOf, type PaidCall, type PaidConfig, paidGateways, pay, shutDown } from './paid-gateways.ts'

const CALLS = 200
const FIT = 60
/** 95 % of what fits. */
const AT_LEAST = 57
/** The tokens that are held for a call. They cost one unit, but for a billionth. */
const HELD = 30

/** Spec 7.3: the first delay, doubled each time, at most three times. */
const BACKOFF_MS = 1000
const RETRIES = 3

/** A purchase from an account of its own: the tokens that a call uses, and how it is refused when nothing more fits. */
interface Purchase {
  readonly what: string
  readonly key: string
  readonly tokens: number
  readonly refusal: string
  /** How many calls are served. */
  readonly most: number
}

const PURCHASES: readonly Purchase[] = [
  {
    what: 'an account that can afford 60',
    key: 'balance',
    tokens: HELD,
    refusal: '402 insufficient_balance',
    most: FIT,
  },
  {
    what: 'a key whose quota is for 60',
    key: 'quota',
    tokens: HELD,
    refusal: '402 key_quota_exhausted',
    most: FIT,
  },
  {
    what: 'calls that cost a third of what is held for them',
    key: 'third',
    tokens: HELD / 3,
    refusal: '402 insufficient_balance',
    // The last of them leaves less than one unit.
    most: 178,
  },
]

const CONFIG: PaidConfig = {
  accounts: [
    { id: 'balance', balance: `${FIT}` },
    { id: 'quota', balance: '1000' },
    { id: 'third', balance: `${FIT}` },
  ],
  keys: [
    { id: 'balance', account: 'balance' },
    { id: 'quota', account: 'quota', quota: `${FIT}` },
    { id: 'third', account: 'third' },
  ],
  price: { outputPerMillion: '33333.333333333' },
}

const callsOf = ({ key }: Purchase): PaidCall[] =>
  Array.from({ length: CALLS }, (_, i) => ({ text: `${key} ${i}`, key, maxTokens: HELD }))

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
      const answer = await ask(gateway, { ...call, text: `${call.key} further ${i} ${asked}` })
      answers.push(answer)
      if (answer.status === 402) break
      if (answer.status === 503) await sleep(100)
    }
  }
  return answers
}

/** All calls at once, at two processes, and what comes until nothing more fits. */
async function spendAll(gateways: readonly GatewayProcess[], purchase: Purchase) {
  const random = seededRandom(90)
  const calls = callsOf(purchase)
  const told = await Promise.all(calls.map((call, i) => persist(gateways[i % 2]!, call, random)))
  const further = await askFurther(gateways, calls[0]!)
  return { purchase, told, further, all: [...told.flat(), ...further] }
}

/** Fails unless what came of a purchase is as it should be; returns what was served. */
function assertSpent(t: TestContext, spent: Awaited<ReturnType<typeof spendAll>>, isAway: boolean) {
  const { purchase, told, further, all } = spent
  // A machine so slow that commits wait for half a second has the gateways refuse calls, and log it. Where it is only calls
  // that wait, each is refused when it has waited.
  const unsure = all.filter(({ errorCode }) => errorCode === 'billing_unavailable')
  const soon = unsure.filter(({ ms }) => ms < PATIENCE_MS)
  assert.ok(isAway || soon.length === 0, `${soon.length} refused at once`)
  const slow = isAway || unsure.length > 0
  const first = told.map((answers) => answers[0]!)
  const served = ofStatus(all, 200)
  const retried = served.length - ofStatus(further, 200).length
  const atOnce = slow ? retried : ofStatus(first, 200).length
  const refused = all.filter(({ status }) => status !== 200).map(codeOf)
  t.diagnostic(
    `${purchase.what}: ${atOnce} at once, ${retried} with retries, ${served.length} in all; ${tally(refused)}${slow ? '; slow' : ''}`,
  )
  assert.ok(served.length <= purchase.most, `${served.length} served: ${purchase.what}`)
  if (purchase.tokens < HELD) assert.equal(served.length, purchase.most)
  assert.ok(atOnce >= AT_LEAST, `${atOnce} of ${FIT} were let through at once: ${purchase.what}`)
  const usual = refused.filter((code) => code !== '503 billing_unavailable')
  assert.deepEqual(new Set(usual), new Set(['503 quota_lease_exhausted', purchase.refusal]))
  return { slow, ids: served.map(({ requestId }) => requestId) }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`200 calls at once over two processes on one ${name}`, { skip, timeout: 180_000 }, () => {
    it('are served as often as there is money for them, and at least 95 % of that at once', async (t) => {
      const databaseUrl = await url(t)
      const world = await paidGateways(t, databaseUrl, CONFIG, async (res, { json }) => {
        const [key] = String(json.messages[0]?.content).split(' ')
        const tokens = PURCHASES.find((purchase) => purchase.key === key)?.tokens
        await sleep(100)
        chatAnswer(res, 'Hello', {
          usage: { prompt_tokens: 7, completion_tokens: tokens, total_tokens: 7 + Number(tokens) },
        })
      })
      const gateways = await Promise.all([world.start(), world.start()])
      const spent = []
      for (const purchase of PURCHASES) spent.push(await spendAll(gateways, purchase))
      await shutDown(gateways)
      const isAway = gateways.some(({ logged }) => logged.some(({ msg }) => msg === 'store is away'))
      const books = await booksOf(databaseUrl)
      assert.deepEqual(books.violations, [])
      assert.deepEqual([books.leased, books.openLeases], [0n, 0], 'nothing is held any more')
      const results = spent.map((each) => assertSpent(t, each, isAway))
      for (const { ids } of results) {
        const sum = ids.reduce((total, id) => total + (books.charged.get(id) ?? 0n), 0n)
        assert.ok(sum <= BigInt(FIT) * 1_000_000_000n, `${sum} were charged`)
      }
      const standing = [...books.charged.keys()].filter((id) => !books.voided.has(id))
      const ids = results.flatMap((result) => result.ids)
      assert.deepEqual(standing.sort(), ids.toSorted(), 'each answer is charged once, and nothing else is')
      const asked = [...world.served().values()]
      assert.ok(asked.every((times) => times === 1))
      if (!results.some(({ slow }) => slow))
        assert.equal(asked.length, ids.length, 'what is refused does not reach the upstream')
    })
  })
}
