import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { LedgerCheck } from '../../../lib/ledger/index.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { type Exchange, readExchange } from '../../support/exchange.ts'
import {
  chat,
  type Environment,
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type ScriptedUpstream, startUpstream, type UpstreamScript } from '../../support/scripted-upstream.ts'

/** The config of the gateways of a test. */
export interface PaidConfig {
  readonly accounts: readonly { readonly id: string; readonly balance?: string }[]
  readonly keys: readonly { readonly id: string; readonly account: string; readonly quota?: string }[]
  readonly price: Readonly<Record<string, string>>
  /** Of the line. */
  readonly timeouts?: Readonly<Record<string, number>>
}

/** Gateway processes that share a database, a config and an upstream which is in this process. */
export interface PaidGateways {
  readonly databaseUrl: string
  readonly upstream: ScriptedUpstream
  /** How often the upstream was asked, by the text of the calls. */
  served(): Map<string, number>
  start(): Promise<GatewayProcess>
}

/** A call of a test; no other has its text. */
export interface PaidCall {
  readonly text: string
  readonly stream?: boolean
  readonly maxTokens?: number
  /** Id of the gateway key that pays. */
  readonly key: string
  readonly idempotencyKey?: string
}

/** The figures in the rows of a database. */
export interface Books extends LedgerCheck {
  /** Nano-units by request id. */
  readonly charged: ReadonlyMap<string, bigint>
  readonly voided: ReadonlySet<string>
  /** Request ids of the call log. */
  readonly logged: ReadonlySet<string>
  readonly openLeases: number
  /** The amount that calls have taken beyond their leases, in nano-units, of all wallets. */
  readonly overrun: bigint
}

/** Prepares gateways whose only model, `m`, has that price; all that was started ends with the test. */
export async function paidGateways(
  t: Pick<TestContext, 'after'>,
  databaseUrl: string,
  { accounts, keys, price, timeouts }: PaidConfig,
  script: UpstreamScript,
  more: Environment = {},
): Promise<PaidGateways> {
  const folder = await temporaryFolder()
  t.after(folder.remove)
  const upstream = await startUpstream(script)
  t.after(() => upstream.close())
  const configFile = join(folder.path, 'config.json')
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
    // Hundreds of calls arrive at once at a process that has half a core.
    timeouts: timeouts ?? { connectMs: 20_000, firstByteMs: 30_000, idleMs: 300_000 },
  }
  const config = {
    accounts,
    keys: keys.map((key) => ({ ...key, secret: secretOf(key.id) })),
    models: [{ id: 'm', kind: 'chat', maxOutputTokens: 100, price }],
    lines: [line],
  }
  await writeFile(configFile, JSON.stringify(config))
  return {
    databaseUrl,
    upstream,
    served: () => {
      const counts = new Map<string, number>()
      for (const { json } of upstream.requests) {
        const text = String(json.messages[0]?.content)
        counts.set(text, (counts.get(text) ?? 0) + 1)
      }
      return counts
    },
    async start() {
      const gateway = await startGatewayProcess({
        DATABASE_URL: databaseUrl,
        GATEWAY_CONFIG: configFile,
        LOG_LEVEL: 'warn',
        ...more,
      })
      t.after(() => gateway.stop())
      return gateway
    },
  }
}

/** Makes a call and reads what comes of it; undefined where nothing came, because the process is gone. */
export async function pay(gateway: GatewayProcess, call: PaidCall): Promise<Exchange | undefined> {
  const { text, stream, maxTokens } = call
  const body = chat('m', text, { ...(stream && { stream }), ...(maxTokens && { max_tokens: maxTokens }) })
  const response = await post(gateway.url, body, headersOf(call)).catch(() => undefined)
  return response && readExchange(response)
}

export function headersOf({
  key,
  idempotencyKey,
}: Pick<PaidCall, 'key' | 'idempotencyKey'>): Record<string, string> {
  return {
    authorization: `Bearer ${secretOf(key)}`,
    ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
  }
}

/** Whether a caller has seen the regular end of an answer. */
export function sawEnd({ stream }: PaidCall, answer: Exchange | undefined): answer is Exchange {
  if (answer?.status !== 200) return false
  return stream ? /^data: ?\[DONE\]$/m.test(answer.text) : !answer.broken
}

/** Reads the rows themselves, with no gateway in between. */
export async function booksOf(databaseUrl: string): Promise<Books> {
  const db = await openDatabase(databaseUrl, { logger: silent })
  try {
    const check = await new SqlLedger(db).check()
    const charges = await db.selectFrom('charges').select(['request_id', 'amount']).execute()
    const voids = await db.selectFrom('voids').select('request_id').execute()
    const calls = await db.selectFrom('calls').select('id').execute()
    const leases = await db.selectFrom('leases').select('id').where('ended_at', 'is', null).execute()
    const wallets = await db.selectFrom('wallets').select('overrun').execute()
    return {
      ...check,
      overrun: wallets.reduce((sum, { overrun }) => sum + overrun, 0n),
      charged: new Map(charges.map(({ request_id, amount }) => [request_id, amount])),
      voided: new Set(voids.map(({ request_id }) => request_id)),
      logged: new Set(calls.map(({ id }) => id)),
      openLeases: leases.length,
    }
  } finally {
    await db.destroy()
  }
}

/** Ends gateways as an operator does, and waits until they have. */
export async function shutDown(gateways: readonly GatewayProcess[]): Promise<void> {
  for (const gateway of gateways) gateway.kill('SIGTERM')
  for (const { exited } of gateways) {
    const { code, stdout, stderr } = await exited
    if (code !== 0) throw new Error(`a gateway ended with ${code}: ${stdout}${stderr}`)
  }
}

const secretOf = (key: string): string => `sk-${key}`

const silent = { debug() {}, info() {}, warn() {}, error() {} }
