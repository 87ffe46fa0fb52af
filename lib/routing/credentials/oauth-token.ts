import type { OAuthCredential } from '../../core/catalog/index.ts'
import { isJsonObject, parseJson } from '../../core/json/index.ts'
import { UnsentError } from '../attempt/failure.ts'
import type { ConnectedLine } from '../lines/line-connect.ts'
import type { FetchedToken } from './token-cache.ts'
import { tokenIn, unreachable, withLineAgent } from './token-endpoint.ts'

const MAX_ANSWER_BYTES = 64 * 1024
/** The life of a token whose endpoint does not name it. */
const DEFAULT_LIFETIME_S = 300

/**
 * Fetches a token by the grant "client credentials". The client's secret goes in the body, as Microsoft Entra wants it.
 *
 * Source: RFC 6749, sections 2.3.1 and 4.4.
 */
export async function oauthToken(
  { tokenUrl, clientId, clientSecret, scope }: OAuthCredential,
  line: ConnectedLine,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    ...(scope !== undefined && { scope }),
  })
  try {
    return await withLineAgent(line, async ({ request }, dispatcher) => {
      const { statusCode, body } = await request(tokenUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: form.toString(),
        signal,
        dispatcher,
      })
      const answer = await read(body)
      if (statusCode !== 200)
        throw new UnsentError(`the token endpoint answered ${statusCode}${reasonIn(answer)}`)
      const { access_token: token, expires_in: life } = isJsonObject(answer) ? answer : {}
      const seconds = Number(life ?? DEFAULT_LIFETIME_S)
      return { value: tokenIn(token), livesMs: (seconds > 0 ? seconds : DEFAULT_LIFETIME_S) * 1000 }
    })
  } catch (error) {
    throw unreachable(error)
  }
}

async function read(body: AsyncIterable<Buffer>): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) throw new UnsentError('the answer of the token endpoint is too long')
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks).toString())
}

/** The error codes of the standard say what to fix; descriptions may repeat what was sent. */
function reasonIn(answer: unknown): string {
  const error = isJsonObject(answer) ? answer.error : undefined
  return typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : ''
}
