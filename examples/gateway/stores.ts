import {
  type AccountStore,
  type BudgetStore,
  type ChangeLog,
  type KeyDirectory,
  type KeyStore,
  type Ledger,
  type LedgerBooks,
  type LineSwitchStore,
  type Logger,
  MemoryAccountStore,
  MemoryBudgetStore,
  MemoryCallStore,
  MemoryChangeLog,
  MemoryIdempotencyStore,
  MemoryKeptStore,
  MemoryKeyStore,
  MemoryLedger,
  MemoryLineSwitchStore,
  MemoryOperatorStore,
  MemorySessionStore,
  MemoryTaskStore,
  MemoryTicketStore,
  memoryKeyDirectory,
  type OperatorStore,
  type SessionStore,
  type TaskStore,
  type TicketStore,
  type UsageStore,
} from 'express-model-gateway'
import type { Seeds } from 'express-model-gateway/admin'
import type { CallStore } from 'express-model-gateway/call-log'
import type { GatewayConfig } from 'express-model-gateway/config'
import type { AnswerStore, IdempotencyStore } from 'express-model-gateway/idempotency'
import type { KeptStore } from 'express-model-gateway/references'
import {
  type ConnectionFigures,
  connectionFigures,
  openDatabase,
  SqlAccountStore,
  SqlAnswerStore,
  SqlBudgetStore,
  SqlCallStore,
  SqlChangeLog,
  SqlIdempotencyStore,
  SqlKeptStore,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlLedger,
  SqlLineSwitchStore,
  SqlOperatorStore,
  SqlSeeds,
  SqlSessionStore,
  SqlTaskStore,
  SqlTicketStore,
  SqlUsageCounter,
  SqlUsageStore,
  SqlWatchedFacts,
  SqlWebhookOutbox,
  SqlWebhookStore,
  seedAccountsAndKeys,
} from 'express-model-gateway/sql'
import {
  MemoryWebhooks,
  type WatchedFacts,
  type WebhookOutbox,
  type WebhookStore,
} from 'express-model-gateway/webhooks'
import { DATABASE_CONNECTIONS } from './settings.ts'

/** What has to last. */
export interface DurableStores {
  readonly keys: KeyDirectory
  readonly calls: CallStore
  /** In the database even where there is a Redis: whether a call ran is as durable as its record. */
  readonly claims: IdempotencyStore
  /** Keeps large answers apart from the call log; undefined: the call log has them. */
  readonly answers?: AnswerStore
  readonly ledger: Ledger & LedgerBooks
  /** What the charges and the calls without a charge add up to. */
  readonly usage: UsageStore
  /** Which line keeps what for whom. */
  readonly kept: KeptStore
  /** Video tasks, and the money held for them. */
  readonly tasks: TaskStore
  readonly tickets: TicketStore
  /** For the admin API, as all that follow. */
  readonly accounts: AccountStore
  readonly adminKeys: KeyStore
  readonly budgets: BudgetStore
  readonly lineSwitches: LineSwitchStore
  readonly operators: OperatorStore
  readonly sessions: SessionStore
  /** The ids that configs have added. */
  readonly seeds: Seeds
  readonly webhooks: WebhookStore
  readonly outbox: WebhookOutbox
  /** Balances and keys that webhooks are told of; undefined: they are not. */
  readonly watchedFacts?: WatchedFacts
  /** What was changed in these, and in tickets. */
  readonly changes: ChangeLog
  /** Whether the ledger completes claims and writes log entries in the transaction of a charge. */
  readonly settledByLedger: boolean
  /** The connections of each pool, for metrics. */
  connections?(): Readonly<Record<string, ConnectionFigures>>
  /** Rejects while the database cannot be reached. */
  ping(): Promise<void>
  /** Writes something of no meaning; rejects while nothing can be written. */
  write(): Promise<void>
  /** Adds accounts and keys of a config that were never added before; rejects while the database cannot be reached. */
  seed(config: GatewayConfig): Promise<void>
  close(): Promise<void>
}

/** Opens the stores that DATABASE_URL names and puts the config's accounts and keys into them. */
export async function openDurableStores(
  url: string,
  config: GatewayConfig,
  logger: Logger,
  connections = DATABASE_CONNECTIONS,
): Promise<DurableStores> {
  if (url === 'memory:') {
    const nothing = async (): Promise<void> => {}
    const keys = memoryKeyDirectory(config)
    const ledger = new MemoryLedger(config)
    const calls = new MemoryCallStore({ usage: ledger.usage })
    const claims = new MemoryIdempotencyStore()
    const changes = new MemoryChangeLog()
    const added = seedsOf(config)
    const webhooks = new MemoryWebhooks({ changes })
    const accounts = new MemoryAccountStore({ ledger, keys, accounts: config.accounts, changes })
    const adminKeys = new MemoryKeyStore({ ledger, directory: keys, accounts, keys: config.keys, changes })
    return {
      keys,
      kept: new MemoryKeptStore(),
      calls,
      claims,
      ledger,
      usage: ledger.usage,
      tasks: new MemoryTaskStore({ money: ledger.holds, claims, calls, changes }),
      tickets: new MemoryTicketStore({ changes, outbox: webhooks }),
      accounts,
      adminKeys,
      budgets: new MemoryBudgetStore({ ledger, accounts, keys: adminKeys, changes, outbox: webhooks }),
      lineSwitches: new MemoryLineSwitchStore({ changes }),
      operators: new MemoryOperatorStore({ changes }),
      sessions: new MemorySessionStore({ changes }),
      seeds: { list: async () => added },
      webhooks,
      outbox: webhooks,
      changes,
      settledByLedger: false,
      ping: nothing,
      write: nothing,
      async seed(next) {
        // Where the config rules, it adds what is new.
        if (next.authority === 'config') added.push(...seedsOf(next))
        else warnOfUnseeded(config, next, logger)
      },
      close: nothing,
    }
  }
  const isSqlite = url.startsWith('sqlite:')
  // Of 24 connections, a handle has as many as stand here.
  const sized = (of24: number) => ({ logger, poolSize: Math.max(1, Math.floor((of24 * connections) / 24)) })
  const db = await openDatabase(url, sized(6))
  const seed = async (next: GatewayConfig): Promise<void> => {
    // Where the config rules, what cannot be added here is changed later.
    await seedAccountsAndKeys(db, next, { logger: next.authority === 'config' ? SILENT : logger })
  }
  await seed(config)
  // A handle does one thing at a time, with Postgres a few. Searches of the call log may be long, and must hold up no
  // write; a write may wait for another process's, and must hold up no key.
  const searches = await openDatabase(url, { ...sized(2), readOnly: true })
  // A year of usage takes seconds, and must hold up none of these.
  const reports = await openDatabase(url, { ...sized(2), readOnly: true })
  const lookUps = await openDatabase(url, { ...sized(2), readOnly: true })
  // The end of every answer waits for the commit of its charge, which so waits for no claim and no batch of the log.
  // Nor may it wait long for rows that an operator has locked. It may wait for two in turn, for the first of which another
  // operation of this process has waited, before the ledger counts as away, and that twice would.
  const money = await openDatabase(url, { ...sized(6), lockTimeoutMs: 150 })
  // A claim whose record somebody has locked ends before the store counts as away.
  const claims = isSqlite ? db : await openDatabase(url, { ...sized(4), lockTimeoutMs: 100 })
  // What counts usage waits no longer for locked rows either: it has those of other accounts meanwhile.
  const counter = new SqlUsageCounter(claims, { logger, fineRetentionMs: config.retention.usage })
  // SQLite writes one thing at a time, and is soonest done when these wait in one line; Postgres writes both at once.
  const large = isSqlite ? money : await openDatabase(url, sized(2))
  return {
    keys: new SqlKeyDirectory(lookUps),
    calls: new SqlCallStore(claims, { searches }),
    claims: new SqlIdempotencyStore(claims),
    answers: new SqlAnswerStore(large),
    kept: new SqlKeptStore(db),
    ledger: new SqlLedger(money, { checks: searches }),
    usage: new SqlUsageStore(reports),
    tasks: new SqlTaskStore(money),
    tickets: new SqlTicketStore(db),
    accounts: new SqlAccountStore(db),
    adminKeys: new SqlKeyStore(db),
    seeds: new SqlSeeds(db),
    budgets: new SqlBudgetStore(db, { lookUps }),
    lineSwitches: new SqlLineSwitchStore(db, { lookUps }),
    operators: new SqlOperatorStore(db),
    sessions: new SqlSessionStore(db),
    webhooks: new SqlWebhookStore(db),
    outbox: new SqlWebhookOutbox(db),
    watchedFacts: new SqlWatchedFacts(searches),
    changes: new SqlChangeLog(searches),
    settledByLedger: true,
    connections: () => ({
      main: connectionFigures(db),
      money: connectionFigures(money),
      look_ups: connectionFigures(lookUps),
      searches: connectionFigures(searches),
      reports: connectionFigures(reports),
      ...(!isSqlite && { claims: connectionFigures(claims), answers: connectionFigures(large) }),
    }),
    async ping() {
      await db.selectFrom('seeds').select('id').limit(1).execute()
    },
    async write() {
      const seeded_at = BigInt(Date.now())
      // No config can name a key so.
      await db
        .insertInto('seeds')
        .values({ kind: 'key', id: ' write', seeded_at })
        .onConflict((conflict) => conflict.columns(['kind', 'id']).doUpdateSet({ seeded_at }))
        .execute()
    },
    async seed(next) {
      await seed(next)
      counter.keepFor(next.retention.usage)
    },
    async close() {
      await counter.close()
      if (!isSqlite) await Promise.all([claims.destroy(), large.destroy()])
      for (const handle of [money, lookUps, searches, reports, db]) await handle.destroy()
    },
  }
}

const SILENT: Logger = { info() {}, warn() {}, error() {} }

function seedsOf({ accounts, keys }: GatewayConfig) {
  return [
    ...accounts.map(({ id }) => ({ kind: 'account' as const, id })),
    ...keys.map(({ id }) => ({ kind: 'key' as const, id })),
  ]
}

/** The memory stores know what they were made with, and what the admin API added. */
function warnOfUnseeded(started: GatewayConfig, next: GatewayConfig, logger: Logger): void {
  const known = new Set([...started.accounts, ...started.keys].map(({ id }) => id))
  const left = [...next.accounts, ...next.keys].map(({ id }) => id).filter((id) => !known.has(id))
  if (left.length > 0)
    logger.warn({ left }, 'accounts and keys added to the config need a restart with "memory:"')
}
