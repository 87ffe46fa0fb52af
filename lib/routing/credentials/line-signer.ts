import type { Line } from '../../core/catalog/index.ts'
import { AwsSigner } from './aws-signer.ts'
import { googleToken } from './google-token.ts'
import { oauthToken } from './oauth-token.ts'
import { OwnSigner } from './own-signer.ts'
import type { LineSigner } from './signer.ts'
import { TokenCache } from './token-cache.ts'
import { TokenSigner } from './token-signer.ts'

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
