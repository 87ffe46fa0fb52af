import type { Agent } from 'undici'
import { lookupAny, lookupPublic, PrivateAddress } from '../core/public-address/index.ts'
import type { SignedMessage } from './signed-message.ts'
import { webhookUrlFault } from './webhook-url.ts'

/** What came of a request: a status, or words for why there is none. */
export type Answer = { readonly status: number } | { readonly status: null; readonly error: string }

/** The bytes and the time that are spent on an answer's body, which nobody reads. */
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
  async send(url: string, { headers, body }: SignedMessage, closing: AbortSignal): Promise<Answer> {
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
      return { status: null, error: late.aborted ? `no answer within ${this.#timeoutMs} ms` : wordsOf(error) }
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

const MAX_WORDS = 100

/** Returns why a request failed: a code of the system, of TLS or of undici where there is one. */
function wordsOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  if (error instanceof PrivateAddress) return error.message
  return String(code ?? message ?? error).slice(0, MAX_WORDS)
}
