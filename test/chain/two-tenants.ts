import type { TestContext } from 'node:test'
import {
  type AssembledGateway,
  type AssembledOptions,
  assembledGateway,
} from '../support/assembled-gateway.ts'
import { KEY } from '../support/gateway.ts'

/** The key of the second tenant, `globex`. */
const OTHER_KEY = 'sk-test-other'

export const PRICE = '0.01'

/** The assembled gateway with two tenants, `acme` and `globex`, and one line behind its pass-through. */
export interface TwoTenants extends AssembledGateway {
  readonly port: number
  /** Sends a request with the key of `globex`. */
  sendOther(path: string, body?: unknown, init?: RequestInit): Promise<Response>
  /** Reads a page of operators. */
  admin(path: string): Promise<Record<string, unknown>>
  /** The balance that an account has left. */
  balanceOf(account: string): Promise<unknown>
}

export interface TenantOptions extends Pick<AssembledOptions, 'databaseUrl'> {
  /** Where the line is. */
  readonly upstream: string
  /** Paths behind `/v1` that are passed on, each with all below it. */
  readonly paths: readonly string[]
  /** The limits of `acme`; `globex` has none. */
  readonly limits?: object
  /** The price of a request that is passed on. Defaults to {@link PRICE}. */
  readonly perRequest?: string
  readonly balance?: string
}

const ADMIN_TOKEN = 'admin-token-of-the-tests'

/** Starts one that is closed at the end of the test. */
export async function twoTenants(t: TestContext, options: TenantOptions): Promise<TwoTenants> {
  const { upstream, paths, limits = {}, perRequest = PRICE, balance = '100', databaseUrl } = options
  const gateway = await assembledGateway(
    t,
    {
      accounts: [
        { id: 'acme', balance, limits },
        { id: 'globex', balance },
      ],
      keys: [
        { id: 'key_acme', account: 'acme', secret: KEY },
        { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
      ],
      models: [{ id: 'claude', kind: 'chat', price: { inputPerMillion: '1', outputPerMillion: '1' } }],
      lines: [
        { id: 'line', provider: 'p', protocol: 'openai', baseUrl: `${upstream}/v1`, models: {} },
        {
          ...{ id: 'messages', provider: 'p', protocol: 'anthropic', baseUrl: `${upstream}/v1` },
          models: { claude: 'claude-upstream' },
        },
      ],
      passThrough: paths
        .flatMap((path) => [`/v1/${path}`, `/v1/${path}/*rest`])
        .map((path) => ({ path, lines: ['line'], price: { perRequest } })),
    },
    { adminToken: ADMIN_TOKEN, ...(databaseUrl !== undefined && { databaseUrl }) },
  )
  const as = (secret: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Response> =>
    gateway.send(path, body, { ...init, headers: { ...init.headers, authorization: `Bearer ${secret}` } })
  const admin = async (path: string): Promise<Record<string, unknown>> => {
    const answer = await as(ADMIN_TOKEN, path)
    return (await answer.json()) as Record<string, unknown>
  }
  return {
    ...gateway,
    port: Number(new URL(gateway.url).port),
    sendOther: (path, body, init) => as(OTHER_KEY, path, body, init),
    admin,
    balanceOf: async (account) => (await admin(`/admin/accounts/${account}`)).balance,
  }
}
