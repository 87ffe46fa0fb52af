import type { GoogleCredential } from '../../core/catalog/index.ts'
import { UnsentError } from '../attempt/unsent-error.ts'
import type { ConnectedLine } from '../lines/line-connect.ts'
import { missing } from './missing-package.ts'
import type { FetchedToken } from './token-cache.ts'
import { tokenIn, unreachable, withLineAgent } from './token-endpoint.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** The life of a token that does not tell it; Google's live for an hour. */
const UNTOLD_LIFE_MS = 300_000

/** Fetches a token of a Google account, by google-auth-library: a service account, a workload identity, the machine's. */
export async function googleToken(
  { credentials }: GoogleCredential,
  line: ConnectedLine,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const { GoogleAuth } = await import('google-auth-library').catch(missing('google-auth-library'))
  try {
    return await withLineAgent(line, async ({ fetch }, dispatcher) => {
      const fetchWithAgent = (url: string | URL | Request, init: RequestInit = {}): Promise<Response> =>
        fetch(String(url), {
          ...(init as object),
          signal,
          dispatcher,
        }) as Promise<unknown> as Promise<Response>
      const auth = new GoogleAuth({
        ...(credentials && { credentials }),
        scopes: [SCOPE],
        clientOptions: { transporterOptions: { fetchImplementation: fetchWithAgent, retry: false } },
      })
      const client = await auth.getClient()
      const { token } = await client.getAccessToken()
      const endsAt = client.credentials.expiry_date
      return { value: tokenIn(token), livesMs: endsAt ? Math.max(1000, endsAt - Date.now()) : UNTOLD_LIFE_MS }
    })
  } catch (error) {
    throw refusalIn(error) ?? unreachable(error)
  }
}

/** What the endpoint answered, by its status and the code of the standard alone. */
function refusalIn(error: unknown): UnsentError | undefined {
  const { status } = (error as { response?: { status?: unknown } }).response ?? {}
  return typeof status === 'number' ? new UnsentError(`the token endpoint answered ${status}`) : undefined
}
