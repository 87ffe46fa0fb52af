import type { GoogleCredential } from '../../core/catalog/index.ts'
import { missingPackages, UnsentError } from '../attempt/failure.ts'
import type { ConnectedLine } from '../lines/line-connect.ts'
import type { FetchedToken } from './token-cache.ts'
import { tokenIn, unreachable, withLineAgent } from './token-endpoint.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** The life of a token whose answer does not name it; Google's live for an hour. */
const DEFAULT_LIFETIME_MS = 300_000

/** Fetches a token of a Google account, by google-auth-library: a service account, a workload identity, the machine's. */
export async function googleToken(
  { credentials }: GoogleCredential,
  line: ConnectedLine,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const { GoogleAuth } = await import('google-auth-library').catch(missingPackages('google-auth-library'))
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
      return {
        value: tokenIn(token),
        livesMs: endsAt ? Math.max(1000, endsAt - Date.now()) : DEFAULT_LIFETIME_MS,
      }
    })
  } catch (error) {
    throw refusalIn(error) ?? unreachable(error)
  }
}

/** Returns the error of a token endpoint that answered with a refusal; it names the status alone. */
function refusalIn(error: unknown): UnsentError | undefined {
  const { status } = (error as { response?: { status?: unknown } }).response ?? {}
  return typeof status === 'number' ? new UnsentError(`the token endpoint answered ${status}`) : undefined
}
