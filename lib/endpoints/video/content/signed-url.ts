import { createHmac, timingSafeEqual } from 'node:crypto'

/** The query of a signed address. */
export interface SignedQuery {
  readonly expires: unknown
  readonly signature: unknown
}

/** Signs addresses of videos. A signed address works without a key, for one video and a limited time. */
export class UrlSigner {
  readonly #secret: string
  readonly #lifeMs: number

  /** @param lifeMs how long an address is valid, in milliseconds. */
  constructor(secret: string, lifeMs: number) {
    this.#secret = secret
    this.#lifeMs = lifeMs
  }

  /** Returns the query of a signed address. */
  queryFor(id: string, now: number): string {
    const expires = String(Math.ceil((now + this.#lifeMs) / 1000))
    return `expires=${expires}&signature=${this.#sign(id, expires).toString('base64url')}`
  }

  /** Checks the query of a signed address. The comparison takes constant time. */
  judge(id: string, { expires, signature }: SignedQuery, now: number): 'good' | 'expired' | 'wrong' {
    if (typeof expires !== 'string' || typeof signature !== 'string' || !/^\d{1,12}$/.test(expires))
      return 'wrong'
    const given = Buffer.from(signature, 'base64url')
    const right = this.#sign(id, expires)
    if (given.length !== right.length || !timingSafeEqual(given, right)) return 'wrong'
    return Number(expires) * 1000 > now ? 'good' : 'expired'
  }

  #sign(id: string, expires: string): Buffer {
    return createHmac('sha256', this.#secret).update(`${id}\n${expires}`).digest()
  }
}
