import type { Line } from '../../core/catalog/index.ts'
import { signedInTime } from '../../routing/credentials/signed-wire.ts'
import type { LineSigner, SignedHeaders } from '../../routing/credentials/signer.ts'
import type { UpstreamTarget } from './upstream-proxy.ts'

export const UNSIGNABLE = 'the line wants whole bodies signed, and this one is passed on unread'

/** Returns the credentials of a request whose body is passed on unread. Rejects with an `UnsentError`. */
export function signedTarget(
  signer: LineSigner,
  line: Line,
  { method, path, headers, lineHeaders }: UpstreamTarget,
): Promise<SignedHeaders> {
  const request = {
    method,
    url: line.origin + path,
    headers: { ...headers, ...lineHeaders },
    body: undefined,
  }
  return signedInTime(signer, line, request)
}
