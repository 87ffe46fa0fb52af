import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf, readExchange } from '../../support/exchange.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatEvents, type ScriptedUpstream, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { type Books, costOf, KEYS } from './ledger-gateway.ts'

/** Words of a streamed answer; a plain one has three. */
const WORDS = ['one ', 'two ', 'three ', 'four ', 'five']
const CLIENTS = 25
/** Longer than this a call is not waited for. */
const HANGS_MS = 100_000

/** One request as its caller saw it. */
export interface Seen {
  readonly requestId: string
  readonly streamed: boolean
  readonly key: string | null
  readonly status: number
  /** Of the error that was the answer, or that ended it. */
  readonly code: string | null
  /** `whole`: the end of an answer; `broken`: an error behind some of one; `refused`: an error, and nothing else. */
  readonly end: 'whole' | 'broken' | 'refused'
  readonly replays: string | null
  /** Milliseconds from asking to the last byte. */
  readonly ms: number
  /** When it ended, as `performance.now()`. */
  readonly at: number
}

/** The time that its upstream takes for an answer that is not streamed, in milliseconds. */
export const UNHURRIED_MS = 50

/** An upstream that takes a while for each answer, so that there are always some in flight. */
export function startUnhurriedUpstream(): Promise<ScriptedUpstream> {
  return startUpstream(async (res, { json }) => {
    await sleep(UNHURRIED_MS)
    if (json.stream === true) {
      await stream(res, chatEvents(WORDS), { paceMs: 25 })
      return
    }
    const message = { role: 'assistant', content: 'Hello' }
    const body = {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
}

export interface AskOptions {
  readonly secret?: string
  readonly streamed?: boolean
  /** Its Idempotency-Key. */
  readonly key?: string | null
}

/** Sends a request; resolves with its head, and with a way to read the rest. */
export async function begin(
  { url }: GatewayProcess,
  { secret = KEYS[0], streamed = false, key = null }: AskOptions = {},
): Promise<{ requestId: string; end(): Promise<Seen> }> {
  const started = performance.now()
  const messages = [{ role: 'user', content: 'Hello!' }]
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      ...(key !== null && { 'idempotency-key': key }),
    },
    body: JSON.stringify({ model: 'm', messages, ...(streamed && { stream: true }) }),
    signal: AbortSignal.timeout(HANGS_MS),
  })
  const end = async (): Promise<Seen> => {
    const got = await readExchange(response)
    const at = performance.now()
    const { requestId, status } = got
    const seen = { requestId, streamed, key, status, ms: at - started, at, replays: null }
    if (status !== 200) {
      const { code = null, details } = got.envelope().error
      return { ...seen, code, end: 'refused', replays: details?.original_request_id ?? null }
    }
    const code = streamed ? (dataOf(got.text).at(-1)?.error?.code ?? null) : null
    const whole = !got.broken && code === null && (!streamed || got.text.endsWith('data: [DONE]\n\n'))
    return { ...seen, code, end: whole ? 'whole' : 'broken' }
  }
  return { requestId: response.headers.get('x-request-id') ?? '', end }
}

/** One request, read to its end. */
export async function ask(gateway: GatewayProcess, options: AskOptions = {}): Promise<Seen> {
  return (await begin(gateway, options)).end()
}

/** Clients that go on until `stop` is called. */
export interface Load {
  /** The requests that they have seen, in the order in which they ended. */
  readonly seen: readonly Seen[]
  /** Resolves when each has ended what it had begun: who has an Idempotency-Key repeats it until it is used up. */
  stop(): Promise<void>
}

/** Twenty-five clients, each with one request at a time: plain and streamed, with an Idempotency-Key and without. */
export function startLoad(gateway: GatewayProcess): Load {
  const seen: Seen[] = []
  let stopped = false
  const client = async (index: number): Promise<void> => {
    const secret = KEYS[index % KEYS.length] as string
    const streamed = index % 4 >= 2
    const keyed = index % 5 >= 3
    let key = keyed ? randomUUID() : null
    while (!stopped || key !== null) {
      const got = await ask(gateway, { secret, streamed, key })
      seen.push(got)
      const used = got.end === 'whole' || got.code === 'idempotency_key_replayed'
      if (used) key = keyed && !stopped ? randomUUID() : null
      if (got.end !== 'whole') await sleep(50)
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
  // Told to whoever stops them.
  clients.catch(() => {})
  return {
    seen,
    async stop() {
      stopped = true
      await clients
    },
  }
}

/** The errors that a caller may get while the ledger cannot write; `broken` comes after some of an answer. */
const WITHOUT_KEY = new Set(['refused billing_unavailable', 'broken billing_unavailable'])
const WITH_KEY = new Set([
  ...WITHOUT_KEY,
  // Whether the key has run cannot be looked up.
  'refused internal_error',
  // The first try runs still, or nobody knows yet what became of it.
  'refused idempotency_key_in_use',
  'refused idempotency_key_replayed',
])

/** Asserts that the callers without an answer got one of the right errors. */
export function assertRightlyRefused(seen: readonly Seen[]): void {
  for (const { end, code, key, status } of seen) {
    if (end === 'whole') continue
    const told = `${end} ${code}`
    assert.ok((key ? WITH_KEY : WITHOUT_KEY).has(told), `${told}${key ? ', with a key' : ''}`)
    if (told === 'refused billing_unavailable') assert.equal(status, 503)
  }
}

/**
 * Each request whose answer had an end is charged once, and what it costs; one that began and was broken off too; what
 * was refused is not; each Idempotency-Key is charged once. Nothing else is charged.
 */
export function assertChargedOnce(seen: readonly Seen[], { charges }: Books): void {
  const begun = seen.filter(({ end }) => end !== 'refused')
  const owed = begun.map(
    ({ requestId, streamed }) => [requestId, costOf(streamed ? WORDS.length : 3)] as const,
  )
  assert.deepEqual(new Map([...charges].sort()), new Map(owed.sort()))
  assert.equal(charges.size, begun.length, 'no request id came twice')
  const byKey = Map.groupBy(
    seen.filter(({ key }) => key !== null),
    ({ key }) => key,
  )
  for (const [key, tries] of byKey) {
    const charged = tries.filter(({ requestId }) => charges.has(requestId)).map(({ requestId }) => requestId)
    const told = new Set(tries.flatMap(({ replays }) => replays ?? []))
    assert.equal(charged.length, 1, `the key ${key} is charged ${charged.length} times: ${described(tries)}`)
    assert.deepEqual([...told], told.size > 0 ? charged : [])
  }
}

function described(tries: readonly Seen[]): string {
  return tries
    .map(({ requestId, end, code, ms, replays }) =>
      [requestId, end, code, `${Math.round(ms)} ms`, replays ?? ''].join(' '),
    )
    .join('; ')
}

/** Nearly all answers come within this; a busy machine makes single ones later. */
const MAX_MS = 3000
const NEARLY_ALL = 0.98

/**
 * Asserts that callers had their answers in time, whatever became of the ledger.
 *
 * @param heldUpMs what the machine adds to a measured time.
 */
export function assertInTime(seen: readonly Seen[], heldUpMs: number): void {
  const took = seen.map(({ ms }) => ms).sort((one, other) => one - other)
  const [nearlyAll = 0, slowest = 0] = [took[Math.floor(took.length * NEARLY_ALL)], took.at(-1)]
  const perhapsHere = `${Math.round(heldUpMs)} ms of them perhaps here`
  assert.ok(nearlyAll < MAX_MS + heldUpMs, `answers took ${nearlyAll} ms, ${perhapsHere}`)
  assert.ok(slowest < 2 * MAX_MS + heldUpMs, `an answer took ${slowest} ms, ${perhapsHere}`)
}

/** How many ended with which code; the answers without one as `whole`. */
export function tally(seen: readonly Seen[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { code, end, key } of seen) {
    const name = `${end}${code ? ` ${code}` : ''}${key ? ', keyed' : ''}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}
