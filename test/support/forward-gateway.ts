import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { formatAmount, parseAmount } from '../../lib/core/catalog/index.ts'
import {
  accountWallet,
  LeasePool,
  type Ledger,
  type LedgerAdmin,
  MemoryLedger,
} from '../../lib/ledger/index.ts'
import { type UpgradeHandler, upgradeHandler } from '../../lib/middleware/begin-call/index.ts'
import { billingGuard } from '../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope, unknownPath } from '../../lib/middleware/error-envelope/index.ts'
import { type ForwardOptions, type ForwardRule, forward } from '../../lib/middleware/forward/index.ts'
import { rateLimit } from '../../lib/middleware/rate-limit/index.ts'
import type { UpstreamResources } from '../../lib/middleware/references/index.ts'
import { loadConfig } from './any-config.ts'
import { type ChainServer, serveChain } from './chain-server.ts'
import type { CleanUp } from './clean-up.ts'
import { KEY } from './gateway.ts'

/** The key of a second account, `globex`. */
export const OTHER_KEY = 'sk-test-other'

/** A rule as the config writes it. */
export interface RuleSeed extends ForwardRule {
  path: string
}

export interface ForwardGatewayOptions {
  /** Where the lines `line-0`, `line-1` … are, or members that replace their defaults. */
  lines: readonly (string | { url: string; [member: string]: unknown })[]
  /** Defaults to `/v1/files` and what is below it, on `line-0`, for 0.01 a request. */
  rules?: readonly RuleSeed[]
  /** Members of the account. */
  account?: Record<string, unknown>
  /** Members of the key. */
  key?: Record<string, unknown>
  ledger?: Ledger & LedgerAdmin
  /** Which line keeps what for whom; ids pass unchecked without it. */
  resources?: UpstreamResources
  /** The bounds of JSON bodies. */
  bodies?: Pick<ForwardOptions, 'bodyLimitBytes' | 'bodyBudgetBytes'>
}

/** The chain of a pass-through, with WebSockets, on memory stores. */
export interface ForwardGateway extends ChainServer {
  readonly port: number
  readonly upgrades: UpgradeHandler
  /** Asks with the test key. */
  ask(path: string, init?: RequestInit): Promise<Response>
  /** Returns what the account has spent once nothing is held any more, and the number of charges. */
  books(): Promise<{ spent: string; charges: number }>
}

const FILE_RULES: readonly RuleSeed[] = ['/v1/files', '/v1/files/*rest'].map((path) => ({
  path,
  lines: ['line-0'],
  price: { perRequest: '0.01' },
}))

/** Starts one that is closed at the end of the test. */
export async function forwardGateway(
  t: CleanUp,
  {
    lines: seeds,
    rules = FILE_RULES,
    account,
    key,
    ledger: given,
    resources: kept,
    bodies,
  }: ForwardGatewayOptions,
): Promise<ForwardGateway> {
  const config = loadConfig({
    accounts: [{ id: 'acme', ...account }, { id: 'globex' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY, ...key },
      { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
    ],
    models: [{ id: 'voice', kind: 'chat' }],
    lines: seeds.map((seed, i) => {
      const { url, ...line } = typeof seed === 'string' ? { url: seed } : seed
      return {
        id: `line-${i}`,
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${url}/v1`,
        apiKey: `upstream-key-${i}`,
        priority: i,
        models: {},
        ...line,
      }
    }),
    passThrough: rules,
  })
  const { catalog, region } = config
  const ledger =
    given ??
    new MemoryLedger({
      accounts: ['acme', 'globex'].map((id) => ({ id, balance: '10' })),
      keys: [{ id: 'key_acme' }, { id: 'key_globex' }],
    })
  let pool: LeasePool | undefined
  let upgrades: UpgradeHandler | undefined
  const chain = await serveChain(config, (app, { logger, lines }) => {
    pool = new LeasePool({ ledger, logger })
    upgrades = upgradeHandler(app)
    const limits = rateLimit()
    for (const rule of config.passThrough) {
      const reserve = (): bigint =>
        parseAmount(rule.price.perRequest ?? '0') + parseAmount(rule.price.perMinute ?? '0')
      app.all(
        rule.path,
        limits,
        billingGuard({ pool, reserve }),
        forward({ catalog, rule, lines, region, ...(kept && { resources: kept }), ...bodies }),
      )
    }
    app.use(unknownPath(), errorEnvelope({ logger }))
  })
  assert.ok(upgrades)
  chain.server.on('upgrade', upgrades.handle)
  t.after(async () => {
    upgrades?.cutOff()
    await chain.close()
    await pool?.close()
  })
  return {
    ...chain,
    upgrades,
    port: (chain.server.address() as AddressInfo).port,
    ask: (path, init = {}) =>
      fetch(chain.url + path, {
        ...init,
        headers: { authorization: `Bearer ${KEY}`, ...init.headers },
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
