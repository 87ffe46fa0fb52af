import { type Dispatcher, request } from 'undici'
import type { Member, Span } from './fleet.ts'
import { between } from './upstream.ts'

/** A call that a caller wants; sent once, or again with the same Idempotency-Key. */
export interface Wanted {
  /** In the body, where the upstream finds it. */
  readonly name: string
  readonly secret: string
  readonly path: string
  readonly protocol: 'openai' | 'anthropic'
  readonly stream: boolean
  readonly idempotencyKey: string | undefined
  readonly body: string
  /** The tokens that it takes of a limit on tokens. */
  readonly inputTokens: number
  readonly sends: Send[]
}

/** One request on the wire, as its caller saw it. Times are milliseconds since the epoch. */
export interface Send {
  /** The X-Request-Id that the caller chose; the call log keeps it. */
  readonly id: string
  readonly member: Member
  readonly sentAt: number
  endedAt: number
  /** The X-Request-Id that it got; null: no head came. */
  requestId: string | null
  status: number | null
  code: string | null
  /** Whether the limits were asked: the answer reports what is left of them. */
  limited: boolean
  retryAfterMs: number | undefined
  /** The span in which its window ends, as the answer reports; undefined: it reports none. */
  windowEnds: Span | undefined
  /** The attempt of the upstream that the answer came from; undefined: too little of the answer came to show it. */
  attemptId: string | undefined
  /** Whether all of a regular answer came, as far as its last byte. */
  sawEnd: boolean
  /** When the caller left, on purpose. */
  leftAt: number | undefined
}

/** How a caller leaves before the answer is over. */
export type Leaving = { readonly afterMs: number } | { readonly afterChunks: number }

/** Of a hundred callers who may leave, those who do. */
const LEAVING_PERCENT = 12

/** How the next caller leaves, if it does. */
export function leavingByChance(): Leaving | undefined {
  if (Math.random() * 100 >= LEAVING_PERCENT) return undefined
  return Math.random() < 0.4 ? { afterMs: between(1, 250) } : { afterChunks: between(1, 12) }
}

/** Sends what is wanted to a process and reads the answer as far as it comes; never rejects. */
export async function exchange(
  dispatcher: Dispatcher,
  member: Member,
  wanted: Wanted,
  leaving?: Leaving,
): Promise<Send> {
  const send: Send = {
    id: `${wanted.name}.${wanted.sends.length + 1}`,
    member,
    sentAt: Date.now(),
    endedAt: 0,
    requestId: null,
    status: null,
    code: null,
    limited: false,
    retryAfterMs: undefined,
    windowEnds: undefined,
    attemptId: undefined,
    sawEnd: false,
    leftAt: undefined,
  }
  wanted.sends.push(send)
  const controller = new AbortController()
  const leave = () => {
    send.leftAt = Date.now()
    controller.abort()
  }
  const timer = leaving && 'afterMs' in leaving ? setTimeout(leave, leaving.afterMs) : undefined
  let received = ''
  try {
    const answer = await request(`${member.gateway.url}${wanted.path}`, {
      method: 'POST',
      headers: headersOf(wanted, send.id),
      body: wanted.body,
      dispatcher,
      signal: controller.signal,
    })
    noteHead(send, answer.statusCode, answer.headers)
    let chunks = 0
    for await (const chunk of answer.body) {
      received += chunk
      if (leaving && 'afterChunks' in leaving && ++chunks === leaving.afterChunks) leave()
    }
  } catch {
    // The connection broke, here or there: the part of the answer that came shows how far it got.
  }
  clearTimeout(timer)
  send.endedAt = Date.now()
  noteBody(send, wanted, received)
  return send
}

function headersOf({ secret, idempotencyKey }: Wanted, id: string): Record<string, string> {
  return {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'x-request-id': id,
    ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
  }
}

function noteHead(send: Send, status: number, headers: Record<string, string | string[] | undefined>): void {
  send.status = status
  send.requestId = `${headers['x-request-id']}`
  send.limited = Object.keys(headers).some((name) => /^(x|anthropic)-ratelimit-/.test(name))
  // The Anthropic-style envelope has no code.
  if (headers['x-original-request-id'] !== undefined) send.code = 'idempotency_key_replayed'
  const retryAfter = headers['retry-after']
  if (retryAfter !== undefined) send.retryAfterMs = Number(retryAfter) * 1000
  const reset = headers['x-ratelimit-reset-requests'] ?? headers['x-ratelimit-reset-tokens']
  if (reset !== undefined) send.windowEnds = windowEnds(`${reset}`, send.sentAt)
}

/** The time left was measured between the request and now, and rounded up: `250ms`, `12s`, `1m0s`. */
function windowEnds(reset: string, sentAt: number): Span {
  const [, ms, minutes = 0, seconds = 0] = /^(?:(\d+)ms|(?:(\d+)m)?(\d+)s)$/.exec(reset) ?? []
  if (ms !== undefined) return { from: sentAt + Number(ms) - 1, to: Date.now() + Number(ms) }
  const left = (Number(minutes) * 60 + Number(seconds)) * 1000
  return { from: sentAt + left - 1000, to: Date.now() + left }
}

function noteBody(send: Send, { protocol, stream }: Wanted, received: string): void {
  send.attemptId = /"id": ?"(attempt-\d+)"/.exec(received)?.[1]
  if (send.status === 200 && stream) {
    send.sawEnd = received.includes(protocol === 'openai' ? 'data: [DONE]\n\n' : 'event: message_stop\n')
    return
  }
  const json = parsed(received)
  if (send.status === 200) send.sawEnd = json !== undefined
  else send.code ??= json?.error?.code ?? json?.error?.type ?? null
}

function parsed(text: string): { error?: { code?: string; type?: string } } | undefined {
  try {
    return JSON.parse(text)
  } catch {
    // It did not come whole.
    return undefined
  }
}
