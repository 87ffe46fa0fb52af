import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { formatAmount } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import {
  accountWallet,
  LeasePool,
  type Ledger,
  type LedgerAdmin,
  MemoryLedger,
} from '../../../lib/ledger/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { type RouteOptions, route } from '../../../lib/middleware/route/index.ts'
import { type ChainServer, serveChain } from '../../support/chain-server.ts'
import { KEY, type LineSeed } from '../../support/gateway.ts'

/** Prices in nano-units per token, each unlike the sums of others. */
const PER_TOKEN = { input: 1000n, cached: 100n, written: 2000n, output: 10_000n }
const PRICE = {
  inputPerMillion: '1',
  cachedInputPerMillion: '0.1',
  cacheWritePerMillion: '2',
  outputPerMillion: '10',
}

/** Of the model, and so of no line here. */
const DEAR = { inputPerMillion: '700', outputPerMillion: '900' }

/** A whole chain that charges, on the memory ledger. */
export interface BilledGateway extends Pick<ChainServer, 'url' | 'openCalls' | 'lines' | 'entry' | 'logger'> {
  readonly ledger: Ledger & LedgerAdmin
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
  /** The amount that the account has spent, in units, once no hold is left, and the number of charges. */
  books(): Promise<{ spent: string; charges: number }>
}

export interface BilledGatewayOptions {
  lines: readonly LineSeed[]
  route?: Partial<RouteOptions>
  ledger?: (Ledger & LedgerAdmin) | undefined
  /** Replaces or adds members of the model "chat". */
  model?: object
  /** The balance of the account, which its key may spend. */
  balance?: string
}

export const ACCOUNTS = {
  accounts: [{ id: 'acme', balance: '100' }],
  keys: [{ id: 'key_acme', quota: '50' }],
}

const accountsWith = (balance: string) => ({
  accounts: [{ id: 'acme', balance }],
  keys: [{ id: 'key_acme', quota: balance }],
})

/** A gateway whose model "chat" is served by some lines, closed at the end of the test. */
export async function billedGateway(
  t: Pick<TestContext, 'after'>,
  options: BilledGatewayOptions,
): Promise<BilledGateway> {
  const { lines: seeds, route: routing, model, balance } = options
  const ledger = options.ledger ?? new MemoryLedger(balance === undefined ? ACCOUNTS : accountsWith(balance))
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
    models: [{ id: 'chat', kind: 'chat', maxOutputTokens: 1000, price: DEAR, ...model }],
    lines: seeds.map(({ url, ...line }, i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: 'openai',
      baseUrl: `${url}/v1`,
      priority: i,
      models: { chat: 'upstream-chat' },
      price: PRICE,
      ...line,
    })),
  })
  const { catalog, region } = config
  let pool: LeasePool | undefined
  const chain = await serveChain(config, (app, { lines, logger }) => {
    pool = new LeasePool({ ledger, logger })
    app.post(
      OPERATIONS.map(({ path }) => path),
      readRequest({ catalog }),
      billingGuard({ pool, catalog }),
      route({ catalog, lines, region, ...config.routing, ...routing }),
    )
    app.use(errorEnvelope({ logger }))
  })
  t.after(async () => {
    await chain.close()
    await pool?.close()
  })
  return {
    ...chain,
    ledger,
    post: (path, body, init = {}) =>
      fetch(chain.url + path, {
        method: 'POST',
        body: JSON.stringify(body),
        ...init,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      }),
    async books() {
      await pool?.close()
      const { violations, charges, leased } = await ledger.check()
      assert.deepEqual(violations, [])
      assert.equal(leased, 0n, 'nothing is held any more')
      const [wallet] = await ledger.wallets([accountWallet('acme')])
      return { spent: formatAmount(wallet?.spent ?? 0n), charges }
    },
  }
}

/** Input, cached, written to the cache, output; null stands for the estimate of the input. */
export type Tokens = readonly [number | null, number, number, number]

/** The log has this usage of a call, its charge is the price of that, and it stands in the ledger, once. */
export async function assertCharged(
  gateway: BilledGateway,
  { usage, billing, request }: CallLogEntry,
  [given, cached, written, output]: Tokens,
  source: 'measured' | 'estimated',
  parts: object = {},
): Promise<void> {
  const input = given ?? request?.estimated_input_tokens ?? 0
  assert.deepEqual(usage, {
    input_tokens: input,
    cached_input_tokens: cached,
    cache_write_tokens: written,
    output_tokens: output,
    source,
    ...parts,
  })
  const plain = input - cached - written
  const terms = [
    { unit: 'input', quantity: plain, price: PRICE.inputPerMillion, nanos: PER_TOKEN.input },
    { unit: 'cached_input', quantity: cached, price: PRICE.cachedInputPerMillion, nanos: PER_TOKEN.cached },
    { unit: 'cache_write', quantity: written, price: PRICE.cacheWritePerMillion, nanos: PER_TOKEN.written },
    { unit: 'output', quantity: output, price: PRICE.outputPerMillion, nanos: PER_TOKEN.output },
  ]
  let amount = 0n
  for (const { quantity, nanos } of terms) amount += BigInt(quantity) * nanos
  assert.equal(billing?.charged, formatAmount(amount))
  const items = terms.filter(({ quantity }) => quantity > 0)
  assert.deepEqual(
    billing?.items,
    items.map(({ unit, quantity, price }) => ({ unit, quantity, price })),
  )
  assert.deepEqual(await gateway.books(), { spent: formatAmount(amount), charges: 1 })
}

/** Nothing was used or charged, and what was held has come back. */
export async function assertUncharged(
  gateway: BilledGateway,
  { usage, billing }: CallLogEntry,
): Promise<void> {
  assert.deepEqual([usage, billing?.charged, billing?.items], [null, null, []])
  assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
}
