import type { Line } from '../../core/catalog/index.ts'
import { AwsSigner } from './aws-signer.ts'
import { googleToken } from './google-token.ts'
import { oauthToken } from './oauth-token.ts'
import { OwnSigner } from './own-signer.ts'
import type { LineSigner, SignedHeaders } from './signer.ts'
import { TokenCache } from './token-cache.ts'

/** Returns what signs the requests to a line; undefined if its key is a text, or it has none. */
export function signerOf(line: Line): LineSigner | undefined {
  const { credential, sign } = line
  if (sign) return new OwnSigner(sign)
  switch (credential?.kind) {
    case undefined:
      return undefined
    case 'oauth':
      return new TokenSigner(new TokenCache((signal) => oauthToken(credential, line, signal)))
    case 'google':
      return new TokenSigner(new TokenCache((signal) => googleToken(credential, line, signal)))
    case 'aws':
      return new AwsSigner(credential)
  }
}

/** Sends a token that is fetched and changes. */
class TokenSigner implements LineSigner {
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
