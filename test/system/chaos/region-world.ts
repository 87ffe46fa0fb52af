import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { accountWallet, type WalletId } from '../../../lib/ledger/index.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import type { CleanUp } from '../../support/clean-up.ts'
import { readExchange } from '../../support/exchange.ts'
import { type FarServer, farServer } from '../../support/far-server.ts'
import {
  chat,
  type Environment,
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

/* Three regions, each with a Postgres of its own behind a delaying proxy, and accounts that all of them serve. */

export const REGIONS = ['eu', 'us', 'asia'] as const
export type RegionName = (typeof REGIONS)[number]

/** Milliseconds from a question to its answer. */
export const ROUND_TRIPS: Readonly<Record<string, number>> = {
  'eu us': 80,
  'asia eu': 150,
  'asia us': 120,
}
/** Within a region. */
const OWN_MS = 1
export const ADMIN_TOKEN = 'admin-token-0123456789'
/** Of each call, in nano-units. */
export const COST = 1_000_000n
const EVERY_MS = 120
/** What the upstream takes for an answer. */
export const UPSTREAM_MS = 20

/** An account that all regions serve. */
export interface RegionalAccount {
  readonly id: string
  readonly home: RegionName
  readonly balance: string
}

/** By their home: one with much, and one with little. */
export const ACCOUNTS: readonly RegionalAccount[] = REGIONS.flatMap((home) => [
  { id: `rich-${home}`, home, balance: '5' },
  { id: `poor-${home}`, home, balance: '0.06' },
])

/** What became of a call. */
export interface RegionalCall {
  readonly region: RegionName
  readonly account: string
  readonly user: string | undefined
  readonly text: string
  /** undefined: the process was gone. */
  readonly status: number | undefined
  readonly code: string | undefined
  readonly sentAt: number
  readonly ms: number
}

/** What the rows of a region say. Amounts are nano-units. */
export interface RegionBooks {
  readonly violations: readonly string[]
  /** By account: what was spent as far as this region knows, and what was charged here. */
  readonly spent: ReadonlyMap<string, bigint>
  readonly charged: ReadonlyMap<string, bigint>
  readonly charges: number
  /** By wallet and region: what left, and what came back. */
  readonly lent: ReadonlyMap<string, { granted: bigint; returned: bigint; spent: bigint }>
  readonly shares: ReadonlyMap<string, { received: bigint; returned: bigint; told: bigint }>
}

/**
 * Starts the databases; `start` starts a gateway of a region. All ends with the test.
 *
 * @param env of the gateways.
 */
export async function regionWorld(
  cleanUp: CleanUp,
  { accounts = ACCOUNTS, env = {} }: { accounts?: readonly RegionalAccount[]; env?: Environment } = {},
) {
  const postgres = await startPostgres({ settings: { max_connections: 400 } })
  cleanUp.after(() => postgres.close())
  const databases = new Map<RegionName, string>()
  for (const region of REGIONS) {
    const url = await postgres.createDatabase()
    await (await openDatabase(url)).destroy()
    databases.set(region, url)
  }
  const proxies = new Map<string, FarServer>()
  for (const from of REGIONS)
    for (const to of REGIONS) {
      const ms = from === to ? OWN_MS : (ROUND_TRIPS[[from, to].sort().join(' ')] ?? OWN_MS)
      const proxy = await farServer(postgres.port, ms)
      proxies.set(`${from} ${to}`, proxy)
      cleanUp.after(() => proxy.close())
    }
  const urlOf = (from: RegionName, to: RegionName): string => {
    const url = new URL(databases.get(to) as string)
    url.port = `${proxies.get(`${from} ${to}`)?.port}`
    return url.href
  }
  const upstream = await startUpstream(async (res) => {
    await sleep(UPSTREAM_MS)
    chatAnswer(res)
  })
  cleanUp.after(() => upstream.close())
  const folder = await temporaryFolder()
  cleanUp.after(folder.remove)
  const GATEWAY_CONFIG = join(folder.path, 'config.json')
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }
  await writeFile(
    GATEWAY_CONFIG,
    JSON.stringify({
      accounts,
      keys: accounts.map(({ id }) => ({ id: `key-${id}`, account: id, secret: `sk-${id}` })),
      models: [{ id: 'm', kind: 'chat', maxOutputTokens: 100, price: { perRequest: '0.001' } }],
      lines: [{ ...line, timeouts: { connectMs: 20_000, firstByteMs: 30_000 } }],
    }),
  )
  return {
    /** How often the upstream was asked, by the text of the calls. */
    served: () => Map.groupBy(upstream.requests, ({ json }) => String(json.messages[0]?.content)),
    /** Cuts a region's database off from all others, or mends that. */
    others(home: RegionName, what: 'cut' | 'mend'): void {
      for (const from of REGIONS) if (from !== home) proxies.get(`${from} ${home}`)?.[what]()
    },
    async start(region: RegionName): Promise<GatewayProcess> {
      const gateway = await startGatewayProcess({
        ...{ GATEWAY_CONFIG, ADMIN_TOKEN, LOG_LEVEL: 'warn', GATEWAY_REGION: region, ...env },
        DATABASE_URL: urlOf(region, region),
        REGION_DATABASES: REGIONS.map((to) => `${to}=${urlOf(region, to)}`).join(),
      })
      cleanUp.after(() => gateway.stop())
      return gateway
    },
    books: (region: RegionName) => booksOf(databases.get(region) as string, accounts),
    /** What calls that counted against a wallet of a budget were charged in a region, in nano-units. */
    async budgeted(region: RegionName, wallet: WalletId): Promise<bigint> {
      const db = await openDatabase(databases.get(region) as string, { readOnly: true })
      const sum = db.selectFrom('charges').select(({ fn }) => fn.sum<bigint>('amount').as('amount'))
      const row = await sum.where('budgets', 'like', `%"${wallet}"%`).executeTakeFirst()
      await db.destroy()
      return BigInt(row?.amount ?? 0n)
    },
  }
}

/** Who calls, one call after the other. */
export interface RegionalCaller {
  readonly account: string
  readonly user?: string
}

/** Calls of every caller in each region until they are stopped. */
export function startTraffic(
  gateways: readonly { region: RegionName; gateway: GatewayProcess }[],
  callers: readonly RegionalCaller[] = ACCOUNTS.map(({ id }) => ({ account: id })),
) {
  const seen: RegionalCall[] = []
  let stopped = false
  const call = async (
    region: RegionName,
    gateway: GatewayProcess,
    { account, user }: RegionalCaller,
    name: string,
  ) => {
    for (let i = 0; !stopped; i++) {
      const text = `${name} ${i}`
      const sentAt = performance.now()
      const headers = { authorization: `Bearer sk-${account}` }
      const response = await post(gateway.url, chat('m', text, { user }), headers).catch(() => undefined)
      const answer = response && (await readExchange(response))
      const ms = performance.now() - sentAt
      const whole = answer && !(answer.status === 200 && answer.broken)
      seen.push({
        region,
        account,
        user,
        text,
        status: whole ? answer.status : undefined,
        code: answer?.errorCode,
        sentAt,
        ms,
      })
      // A process that was killed.
      if (!response) return
      await sleep(Math.max(0, EVERY_MS - ms))
    }
  }
  const running = gateways.flatMap(({ region, gateway }, i) =>
    callers.map((caller, j) => call(region, gateway, caller, `${region} ${i} ${caller.account} ${j}`)),
  )
  return {
    seen,
    async stop() {
      stopped = true
      await Promise.all(running)
    },
  }
}

async function booksOf(url: string, accounts: readonly RegionalAccount[]): Promise<RegionBooks> {
  const db = await openDatabase(url, { readOnly: true })
  try {
    const ledger = new SqlLedger(db)
    const { violations, charges } = await ledger.check()
    const wallets = await ledger.wallets(accounts.map(({ id }) => accountWallet(id)))
    const charged = await db
      .selectFrom('charges')
      .leftJoin('voids', 'voids.request_id', 'charges.request_id')
      .select(({ fn }) => ['charges.account', fn.sum<bigint>('charges.amount').as('amount')])
      .where('voids.request_id', 'is', null)
      .groupBy('charges.account')
      .execute()
    const lent = await db.selectFrom('lent_shares').selectAll().execute()
    const shares = await db.selectFrom('shares').selectAll().execute()
    return {
      violations,
      charges,
      spent: new Map(wallets.map(({ wallet, spent }) => [wallet.slice('account:'.length), spent])),
      charged: new Map(charged.map(({ account, amount }) => [account, BigInt(amount)])),
      lent: new Map(lent.map((row) => [`${row.wallet} ${row.region}`, row])),
      shares: new Map(
        shares.map((row) => [
          row.wallet,
          { received: row.received, returned: row.returned, told: row.told_spent },
        ]),
      ),
    }
  } finally {
    await db.destroy()
  }
}

export async function asked<Body>(
  { url }: GatewayProcess,
  path: string,
  method = 'GET',
  body?: object,
): Promise<Body> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  return (await response.json()) as Body
}
