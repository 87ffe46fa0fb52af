import { within } from '../../core/timing/index.ts'
import { UnsentError } from '../attempt/failure.ts'

/** A token as its endpoint gave it out. */
export interface FetchedToken {
  readonly value: string
  readonly livesMs: number
}

/** A token endpoint that takes longer is asked again by the next request that needs a token. */
const FETCH_MS = 10_000
/** A token is renewed this long before its end, but not before the last fifth of its life. */
const RENEW_MS = 300_000
/** It is not sent in this time before its end: the request takes some time, and clocks differ. */
const SPARE_MS = 10_000
/** How long a failed renewal waits until the next. */
const RENEW_AGAIN_MS = 5000

/**
 * Keeps the token of one line. It is fetched once for all waiting requests, and renewed in the background before its end. If
 * that fails, it is used until its end.
 */
export class TokenCache {
  readonly #fetch: (signal: AbortSignal) => Promise<FetchedToken>
  #token: { readonly value: string; readonly renewAt: number; readonly endsAt: number } | undefined
  #fetching: Promise<string> | undefined
  #notBefore = 0

  /** @param fetch rejects with an `UnsentError`. */
  constructor(fetch: (signal: AbortSignal) => Promise<FetchedToken>) {
    this.#fetch = fetch
  }

  /** Returns the token. Rejects with an `UnsentError` if there is none. */
  get(): string | Promise<string> {
    const now = performance.now()
    const token = this.#token
    if (!token || now >= token.endsAt) return this.#renewed()
    if (now >= token.renewAt && now >= this.#notBefore) {
      this.#notBefore = now + RENEW_AGAIN_MS
      this.#renewed().catch(() => {})
    }
    return token.value
  }

  /** Drops a token that was refused, if it is still the one in use. */
  refuse(value: string): void {
    if (this.#token?.value === value) this.#token = undefined
  }

  #renewed(): Promise<string> {
    this.#fetching ??= this.#fetchNext().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #fetchNext(): Promise<string> {
    const stop = new AbortController()
    const { value, livesMs } = await within(FETCH_MS, this.#fetch(stop.signal), () => {
      const late = new UnsentError('the token endpoint took too long', true)
      stop.abort(late)
      throw late
    })
    const now = performance.now()
    this.#token = {
      value,
      renewAt: now + livesMs - Math.min(RENEW_MS, livesMs / 5),
      endsAt: now + livesMs - Math.min(SPARE_MS, livesMs / 10),
    }
    return value
  }
}
