import { createHmac, timingSafeEqual } from 'node:crypto'

export interface SignedQuery {
  readonly expires: unknown
  readonly signature: unknown
}

/** Signs addresses of videos. A signed address works without a key, for one video and a limited time. */
export class UrlSigner {
  #secrets: readonly string[]
  readonly #lifeMs: number

  /**
   * @param secrets the first one signs, and all are accepted.
   * @param lifeMs how long an address is valid, in milliseconds.
   */
  constructor(secrets: readonly string[], lifeMs: number) {
    this.#secrets = secrets
    this.#lifeMs = lifeMs
  }

  /** Signs and verifies with other secrets from now on. */
  setSecrets(secrets: readonly string[]): void {
    this.#secrets = secrets
  }

  /** Returns the query of a signed address. */
  queryFor(id: string, now: number): string {
    const expires = String(Math.ceil((now + this.#lifeMs) / 1000))
    return `expires=${expires}&signature=${sign(this.#secrets[0] as string, id, expires).toString('base64url')}`
  }

  /** Checks the query of a signed address. The comparison takes constant time. */
  verify(id: string, { expires, signature }: SignedQuery, now: number): 'valid' | 'expired' | 'invalid' {
    if (typeof expires !== 'string' || typeof signature !== 'string' || !/^\d{1,12}$/.test(expires))
      return 'invalid'
    const given = Buffer.from(signature, 'base64url')
    const isRight = this.#secrets.some((secret) => {
      const right = sign(secret, id, expires)
      return given.length === right.length && timingSafeEqual(given, right)
    })
    if (!isRight) return 'invalid'
    return Number(expires) * 1000 > now ? 'valid' : 'expired'
  }
}

function sign(secret: string, id: string, expires: string): Buffer {
  return createHmac('sha256', secret).update(`${id}\n${expires}`).digest()
}
