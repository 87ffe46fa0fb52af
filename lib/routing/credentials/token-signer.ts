import type { LineSigner, SignedHeaders } from './signer.ts'
import type { TokenCache } from './token-cache.ts'

/** Sends a token that is fetched and changes. */
export class TokenSigner implements LineSigner {
  readonly needsBody = false
  readonly #tokens: TokenCache

  constructor(tokens: TokenCache) {
    this.#tokens = tokens
  }

  sign(): SignedHeaders | Promise<SignedHeaders> {
    const token = this.#tokens.get()
    return typeof token === 'string' ? bearer(token) : token.then(bearer)
  }

  refused({ authorization = '' }: SignedHeaders): void {
    this.#tokens.refuse(authorization.slice('Bearer '.length))
  }
}

function bearer(token: string): SignedHeaders {
  return { authorization: `Bearer ${token}` }
}
