import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ReplayError, withRetries } from '../../../lib/client/index.ts'
import { readEntry } from '../../../lib/stores/sql/calls/written-entry.ts'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { cuttingProxy, type Fate } from '../../client/cutting-proxy.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { seededRandom } from './measures.ts'
import { booksOf, paidGateways } from './paid-gateways.ts'

/** How one logical call ended for its caller. */
export interface CallEnd {
  /** The text that it asked with, which no other call has; also its Idempotency-Key. */
  readonly text: string
  /** `answered` with its own answer, `broken` in the middle of a stream, else in a final error. */
  readonly kind: 'answered' | 'broken' | 'refused' | 'thrown' | 'foreign'
  /** The error. */
  readonly what: string
  readonly isReplay: boolean
}

/** The results of a load. */
export interface ClientLoad {
  readonly ends: readonly CallEnd[]
  /** How often each call stands in the ledger, by its key; what was voided does not. */
  readonly charges: ReadonlyMap<string, number>
  /** The calls whose charge was written and then voided. */
  readonly undone: ReadonlySet<string>
  readonly violations: readonly unknown[]
  readonly retries: number
  readonly kills: number
  readonly upstreamRequests: number
  readonly seconds: number
}

const CALLERS = 60
const CALLS_A_KILL = 300
const CONFIG = {
  // Fewer calls at a time than there are callers, so that some are answered 429.
  accounts: [{ id: 'acme', balance: '1000', limits: { concurrency: 50 } }],
  keys: [{ id: 'k', account: 'acme' }],
  price: { perRequest: '0.001' },
}

/**
 * Sends calls through two gateway processes on one database while everything around them fails now and then: upstreams
 * answer 429 and 5xx, are cut or break off; connections to the gateway are cut; one process after the other is killed.
 */
export async function clientLoad(
  t: Pick<TestContext, 'after'>,
  databaseUrl: string,
  calls: number,
): Promise<ClientLoad> {
  const random = seededRandom(calls)
  const world = await paidGateways(t, databaseUrl, CONFIG, faultyUpstream(random))
  const gateways = await Promise.all([world.start(), world.start()])
  const proxy = await cuttingProxy(t, 0)
  proxy.target = () => (gateways[Math.floor(random() * gateways.length)] as GatewayProcess).port
  proxy.fate = () => fateOf(random())

  let [retries, kills, next] = [0, 0, 0]
  let isDone = false
  const onRetry = (): void => void retries++
  const clientOf = (newIdempotencyKey: () => string) =>
    withRetries(fetch, { firstDelayMs: 50, onRetry, newIdempotencyKey })
  const started = performance.now()
  const ends: CallEnd[] = []
  const callers = Array.from({ length: CALLERS }, async () => {
    while (next < calls) ends.push(await makeCall(clientOf, proxy.url, next++))
  })
  const killing = (async () => {
    for (;;) {
      while (!isDone && ends.length < (kills + 1) * CALLS_A_KILL) await sleep(20)
      if (isDone) return
      const i = kills++ % gateways.length
      await gateways[i]?.stop()
      gateways[i] = await world.start()
    }
  })()
  await Promise.all(callers)
  isDone = true
  await killing
  const seconds = (performance.now() - started) / 1000
  for (const gateway of gateways) gateway.kill('SIGTERM')
  await Promise.all(gateways.map(({ exited }) => exited))
  const { violations, charged, voided } = await booksOf(databaseUrl)
  const keys = await keysOf(databaseUrl)
  const charges = new Map<string, number>()
  const undone = new Set<string>()
  for (const id of charged.keys()) {
    const key = keys.get(id) ?? `no key: ${id}`
    if (voided.has(id)) undone.add(key)
    else charges.set(key, (charges.get(key) ?? 0) + 1)
  }
  const upstreamRequests = world.upstream.requests.length
  return { ends, charges, undone, violations, retries, kills, upstreamRequests, seconds }
}

/** The Idempotency-Key of each logged call. */
async function keysOf(databaseUrl: string): Promise<Map<string, string>> {
  const db = await openDatabase(databaseUrl, { readOnly: true })
  try {
    const rows = await db.selectFrom('calls').select(['id', 'entry']).execute()
    return new Map(rows.map(({ id, entry }) => [id, `${readEntry(entry).idempotency_key}`]))
  } finally {
    await db.destroy()
  }
}

function fateOf(drawn: number): Fate {
  if (drawn < 0.08) return 'answer_lost'
  if (drawn < 0.12) return 'answer_cut'
  if (drawn < 0.16) return 'request_cut'
  return drawn < 0.2 ? 'refused' : 'pass'
}

function faultyUpstream(random: () => number): UpstreamScript {
  return async (res, { json }) => {
    const text = String(json.messages[0]?.content)
    const drawn = random()
    await sleep(random() * 30)
    if (drawn < 0.04) answerJson(res, 429, {}, { 'retry-after-ms': '50' })
    else if (drawn < 0.1) answerJson(res, 500, {})
    else if (drawn < 0.12) answerJson(res, 503, {})
    else if (drawn < 0.15) res.destroy()
    else if (drawn < 0.18) chatAnswer(res, '', { usage: undefined })
    else if (!json.stream) chatAnswer(res, text)
    else if (drawn < 0.21) {
      await stream(res, chatEvents([text, 'x']).slice(0, 2), { end: false })
      setImmediate(() => res.destroy())
    } else await stream(res, chatEvents(text.split(/(?<= )/)), { paceMs: 2 })
  }
}

type ClientOf = (newIdempotencyKey: () => string) => typeof fetch

async function makeCall(clientOf: ClientOf, url: string, number: number): Promise<CallEnd> {
  const text = `call ${number} of many`
  const streams = number % 3 === 0
  let isReplay = false
  const end = (kind: CallEnd['kind'], what = ''): CallEnd => ({ text, kind, what, isReplay })
  try {
    const response = await clientOf(() => text)(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-k', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: text }], stream: streams }),
    })
    isReplay = response.headers.has('idempotent-replayed')
    if (!response.ok) {
      const { error } = (await response.json()) as { error: { code: string } }
      return end('refused', error.code)
    }
    const said = await response.text().catch(() => undefined)
    if (said === undefined || (streams && !said.includes('[DONE]'))) return end('broken')
    return end(saidIn(said, streams) === text ? 'answered' : 'foreign', said)
  } catch (error) {
    return end('thrown', error instanceof ReplayError ? `ReplayError: ${error.fault}` : String(error))
  }
}

function saidIn(body: string, streams: boolean): string {
  const events = streams ? [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data as string) : [body]
  return events
    .map((event) => JSON.parse(event).choices?.[0])
    .map((choice) => choice?.message?.content ?? choice?.delta?.content ?? '')
    .join('')
}
