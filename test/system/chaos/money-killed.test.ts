import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import type { Exchange } from '../../support/exchange.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatAnswer, chatEvents, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { seededRandom } from './measures.ts'
import {
  type Books,
  booksOf,
  type PaidCall,
  type PaidGateways,
  paidGateways,
  pay,
  sawEnd,
} from './paid-gateways.ts'

const KILLS = 4
/** A quarter of a minute where nothing else runs; only a hang takes that long. */
const TIMEOUT_MS = 600_000
const random = seededRandom(20)

/** A call as its caller saw it. */
interface Paid {
  readonly call: PaidCall
  readonly answer: Exchange | undefined
  /** Whether its usage may not have been written in time: then it is not charged, and its key is free. */
  readonly mayBeFree: boolean
}

/** Each call has a number of its own, which also decides the tokens that the upstream reports. */
const numberOf = (text: string): number => Number(text.slice('call '.length))
const tokensOf = (text: string): number => 1 + (numberOf(text) % 7)
/** Nano-units: 0.001 a call and 0.0001 a token. */
const costOf = ({ text }: PaidCall): bigint => 1_000_000n + 100_000n * BigInt(tokensOf(text))

const CONFIG = {
  accounts: [{ id: 'acme', balance: '1000' }],
  keys: [
    { id: 'k', account: 'acme' },
    { id: 'limited', account: 'acme', quota: '500' },
  ],
  price: { perRequest: '0.001', outputPerMillion: '100' },
}

/** Answers after a while, plain or word by word. */
const upstreamScript: Parameters<typeof paidGateways>[3] = async (res, { json }) => {
  const tokens = tokensOf(String(json.messages[0]?.content))
  if (json.stream) {
    await stream(res, chatEvents(Array.from({ length: tokens }, (_, i) => `word ${i} `)), { paceMs: 4 })
    return
  }
  await sleep(5 + random() * 30)
  chatAnswer(res, 'Hello', {
    usage: { prompt_tokens: 7, completion_tokens: tokens, total_tokens: 7 + tokens },
  })
}

let made = 0

function nextCall(): PaidCall {
  const i = made++
  return {
    text: `call ${i}`,
    stream: i % 2 === 0,
    key: i % 3 === 0 ? 'limited' : 'k',
    ...(i % 4 < 2 && { idempotencyKey: `key ${i}` }),
  }
}

/** Callers that come again and again until the process is gone, which is killed after so long. */
async function loadAndKill(gateway: GatewayProcess, callers: number, ms: number): Promise<Paid[]> {
  const paid: Omit<Paid, 'mayBeFree'>[] = []
  let killed = false
  const loops = Array.from({ length: callers }, async () => {
    while (!killed) {
      const call = nextCall()
      paid.push({ call, answer: await pay(gateway, call) })
    }
  })
  await sleep(ms)
  // On a slow machine nobody has an answer by then, and a kill would show nothing.
  await until(() => paid.filter(({ call, answer }) => sawEnd(call, answer)).length >= 3, 'answers', 30_000)
  killed = true
  await gateway.stop()
  await Promise.all(loops)
  const isSlow = gateway.logged.some(({ msg }) => msg === 'store is away')
  return paid.map((each) => {
    const code = each.answer ? each.answer.errorCode : 'killed'
    return { ...each, mayBeFree: isSlow && (code === 'killed' || code === 'billing_unavailable') }
  })
}

function described({ call, answer }: Paid): string {
  const told = answer
    ? `${answer.requestId} ${answer.status} ${answer.errorCode ?? ''} ${answer.broken}`
    : 'killed'
  return `${call.text}, ${call.stream ? 'streamed' : 'plain'}, ${call.idempotencyKey ?? 'no key'}: ${told}`
}

/** All that was paid so far, against the rows. */
async function assertBooks(world: PaidGateways, all: readonly Paid[]): Promise<Books> {
  const books = await booksOf(world.databaseUrl)
  assert.deepEqual(books.violations, [])
  for (const { call, answer } of all) {
    if (!sawEnd(call, answer)) continue
    assert.equal(books.charged.get(answer.requestId), costOf(call), `${call.text}, ${answer.requestId}`)
    assert.ok(books.logged.has(answer.requestId), 'its log entry came with the charge')
    assert.ok(!books.voided.has(answer.requestId))
  }
  const ids = all.flatMap(({ answer }) => answer?.requestId ?? [])
  assert.equal(new Set(ids).size, ids.length, 'no request id twice')
  const served = world.served()
  const mayRunAgain = new Set(all.filter(({ mayBeFree }) => mayBeFree).map(({ call }) => call.text))
  const twice = [...served].filter(([text, times]) => times > (mayRunAgain.has(text) ? 2 : 1))
  const seen = all.filter(({ call }) => twice.some(([text]) => text === call.text))
  assert.deepEqual(seen.map(described), [], 'no call ran twice')
  const standing = [...books.charged.keys()].filter((id) => !books.voided.has(id))
  assert.ok(standing.length <= served.size, 'each is charged once at most')
  return books
}

/** Asks again until it is known whether the key has run: on a slow machine that may take more than one look. */
async function askAgain(gateway: GatewayProcess, call: PaidCall): Promise<Exchange> {
  for (let asked = 0; ; asked++) {
    const answer = await pay(gateway, call)
    assert.ok(answer)
    if (answer.errorCode !== 'internal_error' || asked > 50) return answer
    await sleep(100)
  }
}

/** A key whose call was charged stays taken, for whoever comes next. */
async function assertReplayed(
  world: PaidGateways,
  gateway: GatewayProcess,
  paid: readonly Paid[],
  books: Books,
): Promise<number> {
  const keyed = paid.filter(({ call }) => call.idempotencyKey !== undefined)
  const again = await Promise.all(
    keyed.map(async (each) => ({ ...each, now: await askAgain(gateway, each.call) })),
  )
  // Statements that the killed process had sent may have been committed after the kill.
  const since = await booksOf(world.databaseUrl)
  let replayed = 0
  for (const { call, answer, now } of again) {
    const original = now.status === 409 ? now.envelope().error.details?.original_request_id : undefined
    if (now.errorCode === 'idempotency_key_replayed') {
      replayed++
      assert.ok(since.charged.has(`${original}`), `${call.text} was charged`)
    }
    if (!answer || !books.charged.has(answer.requestId) || books.voided.has(answer.requestId)) continue
    assert.deepEqual([now.status, now.errorCode], [409, 'idempotency_key_replayed'])
    assert.equal(original, answer.requestId)
  }
  return replayed
}

for (const { name, url, skip } of BACKENDS) {
  describe(`a gateway on ${name} that is killed under load`, { skip, timeout: TIMEOUT_MS }, () => {
    it(`${KILLS} times has charged each answer whose end its caller saw, once, and kept its key`, {
      timeout: TIMEOUT_MS,
    }, async (t) => {
      const world = await paidGateways(t, await url(t), CONFIG, upstreamScript)
      const all: Paid[] = []
      let latest: Paid[] = []
      let books = await booksOf(world.databaseUrl)
      let replayed = 0
      for (let kill = 0; kill < KILLS; kill++) {
        const gateway = await world.start()
        replayed += await assertReplayed(world, gateway, latest, books)
        latest = await loadAndKill(gateway, 10 + Math.floor(random() * 20), 100 + random() * 500)
        all.push(...latest)
        books = await assertBooks(world, all)
      }
      const seen = all.filter(({ call, answer }) => sawEnd(call, answer)).length
      const { size } = books.charged
      const again = [...world.served().values()].filter((times) => times > 1).length
      t.diagnostic(
        `${all.length} calls, ${size} charged, ${seen} seen to their end, ${replayed} keys replayed, ${again} run again, free`,
      )
      assert.ok(seen > KILLS, 'there was load')
      assert.ok(replayed > KILLS, 'with keys')
    })
  })
}
