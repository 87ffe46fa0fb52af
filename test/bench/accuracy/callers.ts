import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import { chatCompletions, estimateTokens } from '../../../lib/core/operations/index.ts'
import { exchange, leavingByChance, type Send, type Wanted } from './exchange.ts'
import type { Fleet } from './fleet.ts'
import { type LimitedSubject, MAX_WORDS, MODEL, PAID_KEYS, POOR } from './setting.ts'
import { between } from './upstream.ts'

/** The state that all callers of a run share. */
export interface Load {
  readonly fleet: Fleet
  readonly dispatcher: Dispatcher
  /** Whether some leave before their answer is over. */
  readonly leave: boolean
  /** Aborted when the load is over. */
  readonly over: AbortSignal
  /** Everything that anybody wanted. */
  readonly wanted: Wanted[]
  /** Set while new callers are to keep coming to the limits of an outage. */
  crowd: boolean
}

const MAX_TRIES = 8
const CROWD_EVERY_MS = 60
const VOCABULARY = 'the quick brown fox jumps over a lazy dog and then sleeps until noon'.split(' ')

/** Of an account without limits: one request after the other; half of them may be repeated under their key. */
export async function paidCaller(load: Load, caller: number): Promise<void> {
  for (let turn = caller; !load.over.aborted; turn++) {
    const protocol = Math.random() < 0.5 ? 'openai' : 'anthropic'
    const secret = PAID_KEYS[turn % PAID_KEYS.length] as string
    const wanted = want(load, secret, protocol, Math.random() < 0.5)
    for (let tries = 1; ; tries++) {
      const send = await sendNow(load, wanted, turn + tries)
      if (isOver(wanted, send) || tries === MAX_TRIES || load.over.aborted) break
      await pause(load, send.retryAfterMs ?? between(50, 300))
    }
    const last = wanted.sends.at(-1)
    if (last && !last.sawEnd) await pause(load, Math.min(last.retryAfterMs ?? 100, 1000))
  }
}

/** Of an account that runs dry: asks on, as what others held may come back. */
export async function poorCaller(load: Load, caller: number): Promise<void> {
  for (let turn = caller; !load.over.aborted; turn++) {
    const send = await sendNow(load, want(load, POOR.key, 'openai', false), turn)
    if (!send.sawEnd) await pause(load, between(100, 400))
  }
}

/** Waits when an answer says so, for as long as it says. */
export async function limitedCaller(load: Load, { keys }: LimitedSubject, caller: number): Promise<void> {
  // Callers who begin at the same instant would be refused, and come back, all at the same instant too.
  await pause(load, between(0, 1000))
  for (let turn = caller; !load.over.aborted; turn++) {
    const send = await sendNow(load, want(load, keys[turn % keys.length] as string, 'openai', false), turn)
    if (!send.sawEnd) await pause(load, send.retryAfterMs ?? between(50, 300))
  }
}

/** While there is a crowd, a new caller every moment, who has no wait from an answer yet and asks once. */
export async function crowd(load: Load, { keys }: LimitedSubject): Promise<void> {
  for (let turn = 0; !load.over.aborted; turn++) {
    const secret = keys[turn % keys.length] as string
    if (load.crowd) void sendNow(load, want(load, secret, 'openai', false), turn >> 1)
    await pause(load, CROWD_EVERY_MS)
  }
}

let named = 0

function want(load: Load, secret: string, protocol: Wanted['protocol'], keyed: boolean): Wanted {
  const name = `wanted-${++named}`
  const stream = Math.random() < 0.6
  const prompt = Array.from({ length: between(30, 60) }, () => VOCABULARY[between(0, VOCABULARY.length - 1)])
  const request = {
    model: MODEL[protocol],
    messages: [{ role: 'user', content: prompt.join(' ') }],
    stream,
    max_tokens: MAX_WORDS,
    ...(protocol === 'openai' ? { user: name } : { metadata: { user_id: name } }),
  }
  const body = JSON.stringify(request)
  const { estimatedInputTokens } = chatCompletions.facts(request, Buffer.from(body), estimateTokens)
  const wanted: Wanted = {
    name,
    secret,
    path: protocol === 'openai' ? '/v1/chat/completions' : '/v1/messages',
    protocol,
    stream,
    idempotencyKey: keyed ? name : undefined,
    body,
    inputTokens: estimatedInputTokens,
    sends: [],
  }
  load.wanted.push(wanted)
  return wanted
}

function sendNow(load: Load, wanted: Wanted, turn: number): Promise<Send> {
  return exchange(load.dispatcher, load.fleet.pick(turn), wanted, load.leave ? leavingByChance() : undefined)
}

/** One without a key is never repeated: it might run twice. */
function isOver({ idempotencyKey }: Wanted, { sawEnd, code, status }: Send): boolean {
  return sawEnd || idempotencyKey === undefined || code === 'idempotency_key_replayed' || status === 402
}

async function pause({ over }: Load, ms: number): Promise<void> {
  await sleep(ms, undefined, { signal: over }).catch(() => {})
}
