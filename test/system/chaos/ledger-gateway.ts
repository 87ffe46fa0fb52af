import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { accountWallet, type LedgerCheck } from '../../../lib/ledger/index.ts'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import type { CleanUp } from '../../support/clean-up.ts'
import {
  type Environment,
  type GatewayProcess,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import type { ScriptedUpstream } from '../../support/scripted-upstream.ts'

/** The balance of each account at first. Nano-units. */
const BALANCE = 1000n * 1_000_000_000n
const ACCOUNTS = ['acme', 'globex'] as const
/** The first two are of one account, and the first has a quota. */
export const KEYS = ['sk-with-quota', 'sk-without', 'sk-of-another'] as const

/** Returns the cost of a call whose upstream says `words` words, in nano-units; each has seven tokens of input. */
export const costOf = (words: number): bigint => 1_000_000n + 7n * 1000n + BigInt(words) * 2000n

/** A config file with a priced model on a line of that upstream, and two prepaid accounts, in a folder of its own. */
export async function writeConfig(folder: string, { url }: ScriptedUpstream): Promise<string> {
  const path = join(folder, 'config.json')
  const price = { perRequest: '0.001', inputPerMillion: '1', outputPerMillion: '2' }
  const config = {
    accounts: ACCOUNTS.map((id) => ({ id, balance: '1000' })),
    keys: [
      { id: 'quota', account: 'acme', secret: KEYS[0], quota: '500' },
      { id: 'free', account: 'acme', secret: KEYS[1] },
      { id: 'other', account: 'globex', secret: KEYS[2] },
    ],
    models: [{ id: 'm', kind: 'chat', maxOutputTokens: 100, price }],
    lines: [
      {
        ...{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { m: 'u' } },
        // A process that stands still is not an upstream that does.
        timeouts: { idleMs: 300_000 },
      },
    ],
  }
  await writeFile(path, JSON.stringify(config))
  return path
}

/** The assembled gateway on a database, ended with the test. */
export async function startPaidGateway(
  t: CleanUp,
  upstream: ScriptedUpstream,
  databaseUrl: string,
  { through = [], more = {} }: { through?: readonly string[]; more?: Environment } = {},
): Promise<GatewayProcess> {
  const folder = await temporaryFolder()
  t.after(folder.remove)
  const GATEWAY_CONFIG = await writeConfig(folder.path, upstream)
  const env = { GATEWAY_CONFIG, DATABASE_URL: databaseUrl, LOG_LEVEL: 'warn', ...more }
  const gateway = await startGatewayProcess(env, through)
  t.after(async () => {
    gateway.kill('SIGCONT')
    await gateway.stop()
  })
  return gateway
}

/** Ends gateways in good order: what waits is settled, leases go back. */
export async function endInGoodOrder(...gateways: readonly GatewayProcess[]): Promise<void> {
  for (const gateway of gateways) gateway.kill('SIGTERM')
  for (const { exited } of gateways) {
    const { code, stderr } = await exited
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
  }
}

async function readiness({ url }: GatewayProcess): Promise<number> {
  const response = await fetch(`${url}/readyz`)
  await response.arrayBuffer()
  return response.status
}

/** Asks /readyz until it answers so. */
export async function untilReadiness(gateway: GatewayProcess, status: 200 | 503): Promise<void> {
  const deadline = performance.now() + 20_000
  while ((await readiness(gateway)) !== status) {
    assert.ok(performance.now() < deadline, `/readyz does not answer ${status}`)
    await sleep(50)
  }
}

/** The state of the ledger. */
export interface Books {
  /** Charges that no void has undone: request id and nano-units. */
  readonly charges: ReadonlyMap<string, bigint>
  readonly voids: ReadonlySet<string>
  /** The amount that calls have taken beyond their leases, in nano-units. */
  readonly overrun: bigint
  readonly check: LedgerCheck
}

/** Waits until calls are charged; what had failed while others were written is tried again every 30 s. */
export async function untilCharged(databaseUrl: string, requestIds: readonly string[]): Promise<void> {
  const db = await openDatabase(databaseUrl, { readOnly: true })
  const deadline = performance.now() + 40_000
  try {
    for (;;) {
      const rows = await db.selectFrom('charges').select('request_id').execute()
      const charged = new Set(rows.map(({ request_id }) => request_id))
      const missing = requestIds.filter((id) => !charged.has(id))
      if (missing.length === 0) return
      assert.ok(performance.now() < deadline, `${missing} are not charged`)
      await sleep(100)
    }
  } finally {
    await db.destroy()
  }
}

/**
 * Reads the ledger that no process uses any more: its rules hold, each account has what was deposited less its charges,
 * and nothing is held.
 *
 * @param leasesLeft whether a process was killed, or has given up leases of which it could not know what they hold:
 *   those are there until somebody has watched them for a while.
 */
export async function readBooks(databaseUrl: string, { leasesLeft = false } = {}): Promise<Books> {
  const db = await openDatabase(databaseUrl, { readOnly: true })
  try {
    const ledger = new SqlLedger(db)
    const check = await ledger.check()
    const undone = await db.selectFrom('voids').select('request_id').execute()
    const rows = await db.selectFrom('charges').select(['request_id', 'account', 'amount']).execute()
    const voids = new Set(undone.map(({ request_id }) => request_id))
    const standing = rows.filter(({ request_id }) => !voids.has(request_id))
    const charges = new Map(standing.map(({ request_id, amount }) => [request_id, amount]))
    const spentBy = ACCOUNTS.map((id) => sum(standing.filter(({ account }) => account === id)))
    const wallets = await ledger.wallets(ACCOUNTS.map(accountWallet))
    assert.deepEqual(check.violations, [])
    assert.deepEqual([check.deposited, check.spent], [BALANCE * 2n, sum(standing)])
    assert.deepEqual(
      wallets.map(({ funds, spent }) => [funds, spent]),
      spentBy.map((spent) => [BALANCE, spent]),
    )
    if (!leasesLeft) {
      assert.equal(check.leased, 0n)
      for (const { leased } of wallets) assert.equal(leased, 0n)
    }
    return { charges, voids, overrun: wallets.reduce((total, { overrun }) => total + overrun, 0n), check }
  } finally {
    await db.destroy()
  }
}

function sum(charges: readonly { readonly amount: bigint }[]): bigint {
  return charges.reduce((total, { amount }) => total + amount, 0n)
}
