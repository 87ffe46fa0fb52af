import { randomBytes } from 'node:crypto'
import { Webhook as Signer } from 'standardwebhooks'
import type { Agent } from 'undici'
import { isPrivateHost, lookupAny, lookupPublic, PrivateAddress } from '../../core/public-address/index.ts'
import type { ClaimedDelivery } from './outbox.ts'
import { slackMessage } from './slack-message.ts'

const MAX_URL_LENGTH = 2000

/** Returns what is wrong with the address of a webhook. Names are checked again at each connection. */
export function webhookUrlFault(url: string, allowPrivate: boolean): string | undefined {
  const parsed = URL.parse(url)
  if (url.length > MAX_URL_LENGTH) return `must have at most ${MAX_URL_LENGTH} characters`
  if (!parsed || !(allowPrivate ? /^https?:$/ : /^https:$/).test(parsed.protocol))
    return 'must be an https address'
  if (parsed.username !== '' || parsed.password !== '') return 'must not hold credentials'
  if (!allowPrivate && isPrivate(parsed.hostname)) return 'must be a public address'
  return undefined
}

function isPrivate(hostname: string): boolean {
  return isPrivateHost(hostname) || /(^|\.)localhost\.?$/.test(hostname)
}

/** A request to a receiver. */
export interface WebhookMessage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const SECRET_BYTES = 32

export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

const HEADERS = { 'content-type': 'application/json', 'user-agent': 'express-model-gateway' }

/**
 * Returns the request that reports an event to a webhook. Each attempt has the same body and, as Standard Webhooks defines it, the
 * same id, and a time and signature of its own. Slack reads no headers.
 */
export function messageOf(
  delivery: ClaimedDelivery,
  { now, consoleUrl }: { readonly now: number; readonly consoleUrl: string | undefined },
): WebhookMessage {
  const { event, format, secrets } = delivery
  if (format === 'slack') return { headers: HEADERS, body: JSON.stringify(slackMessage(event, consoleUrl)) }
  const { id, type, at, data } = event
  const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
  const time = new Date(now)
  const signatures = secrets.map((secret) => new Signer(secret).sign(id, time, body))
  return {
    headers: {
      ...HEADERS,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now / 1000)),
      'webhook-signature': signatures.join(' '),
    },
    body,
  }
}

/** The HTTP status, or the reason why the request failed. */
export type Answer = { readonly status: number } | { readonly status: null; readonly error: string }

/** The bytes and the time that are spent on an answer's body, which is discarded. */
const BODY_BYTES = 4096
const BODY_MS = 500

/**
 * Sends requests to the addresses that operators have named: to public ones only, unless private ones are allowed. Each
 * request has a connection of its own, to an address that was checked for it. Redirects are not followed.
 */
export class WebhookRequests {
  readonly #allowPrivate: boolean
  readonly #timeoutMs: number
  #agent: Promise<Agent> | undefined

  constructor({ allowPrivate, timeoutMs }: { allowPrivate: boolean; timeoutMs: number }) {
    this.#allowPrivate = allowPrivate
    this.#timeoutMs = timeoutMs
  }

  /** Sends a message; never rejects. */
  async send(url: string, { headers, body }: WebhookMessage, closing: AbortSignal): Promise<Answer> {
    const fault = webhookUrlFault(url, this.#allowPrivate)
    if (fault !== undefined) return { status: null, error: `the address ${fault}` }
    const late = AbortSignal.timeout(this.#timeoutMs)
    try {
      const { request } = await import('undici')
      this.#agent ??= this.#open()
      const answer = await request(url, {
        dispatcher: await this.#agent,
        method: 'POST',
        headers,
        body,
        // Without kept connections, none is older than the check of its address, and none breaks under a request.
        reset: true,
        signal: AbortSignal.any([closing, late]),
      })
      void answer.body.dump({ limit: BODY_BYTES, signal: AbortSignal.timeout(BODY_MS) }).catch(() => {})
      return { status: answer.statusCode }
    } catch (error) {
      return {
        status: null,
        error: late.aborted ? `no answer within ${this.#timeoutMs} ms` : reasonOf(error),
      }
    }
  }

  /** Breaks off what runs. */
  async close(): Promise<void> {
    await (await this.#agent)?.destroy()
  }

  async #open(): Promise<Agent> {
    const { Agent } = await import('undici')
    return new Agent({
      allowH2: false,
      pipelining: 1,
      headersTimeout: this.#timeoutMs,
      connect: { timeout: this.#timeoutMs, lookup: this.#allowPrivate ? lookupAny : lookupPublic },
    })
  }
}

const MAX_REASON_LENGTH = 100

/** Returns why a request failed: a code of the system, of TLS or of undici where there is one. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  if (error instanceof PrivateAddress) return error.message
  return String(code ?? message ?? error).slice(0, MAX_REASON_LENGTH)
}
