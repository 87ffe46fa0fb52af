import type { KeyDirectory, Ledger, Logger, TelemetryOptions } from 'express-model-gateway'
import type {
  AccountStore,
  BudgetStore,
  ChangeLog,
  KeyStore,
  LineSwitchStore,
  OperatorStore,
  Seeds,
  SessionStore,
} from 'express-model-gateway/admin'
import type { CacheStore } from 'express-model-gateway/cache'
import type { CallStore } from 'express-model-gateway/call-log'
import type { AnswerStore, IdempotencyStore } from 'express-model-gateway/idempotency'
import type { LedgerAdmin } from 'express-model-gateway/ledger'
import type { ResourceStore } from 'express-model-gateway/references'
import {
  type Archive,
  type ConnectionFigures,
  connectionFigures,
  type Database,
  FolderArchive,
  type OpenDatabaseOptions,
  openDatabase,
  type RetentionTimes,
  S3Archive,
  SqlAccountStore,
  SqlAnswerStore,
  SqlBudgetStore,
  SqlCallStore,
  SqlChangeLog,
  SqlIdempotencyStore,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlLedger,
  SqlLineSwitchStore,
  SqlOperatorStore,
  SqlResourceStore,
  SqlRetention,
  SqlSeeds,
  SqlSessionStore,
  SqlTaskStore,
  SqlTicketStore,
  SqlUsageCounter,
  SqlUsageStore,
  SqlWatchSource,
  SqlWebhookOutbox,
  SqlWebhookStore,
  seedAccountsAndKeys,
} from 'express-model-gateway/sql'
import { StoreWatch, VideoCharges } from 'express-model-gateway/telemetry'
import type { TicketStore } from 'express-model-gateway/tickets'
import type { UsageStore } from 'express-model-gateway/usage'
import type { TaskStore } from 'express-model-gateway/video'
import type { WatchSource, WebhookOutbox, WebhookStore } from 'express-model-gateway/webhooks'
import { DATABASE_CONNECTIONS } from '../config/environment.ts'
import type { ServedConfig } from '../config/served-config.ts'
import { serverLog } from '../telemetry/server-log.ts'
import type { LimitStores } from './limit-stores.ts'

/** The stores whose content has to last. */
export interface DurableStores {
  readonly keys: KeyDirectory
  readonly calls: CallStore
  /** In the database even where there is a Redis: whether a call ran is as durable as its record. */
  readonly claims: IdempotencyStore
  /** Keeps large answers apart from the call log. */
  readonly answers: AnswerStore
  readonly ledger: Ledger & LedgerAdmin
  /** The sums of the charges and of the calls without a charge. */
  readonly usage: UsageStore
  /** The record of objects stored at upstreams: their account and their line. */
  readonly resources: ResourceStore
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
  /** Balances and keys that webhooks report. */
  readonly watchSource: WatchSource
  /** The changes of these, and of tickets. */
  readonly changes: ChangeLog
  /** Deletes old calls and charges. For metrics, whether it cannot. */
  readonly retention: { readonly away: boolean; readonly outages: number }
  /** The database itself. */
  readonly database: Database
  /** For all that uses these stores: an outage of the database is one line when it begins and one when it ends. */
  readonly logger: Logger
  /** The connections of each pool, for metrics. */
  connections(): Readonly<Record<string, ConnectionFigures>>
  /** Rejects while the database cannot be reached. */
  ping(): Promise<void>
  /** Writes something of no meaning; rejects while nothing can be written. */
  write(): Promise<void>
  /** Adds accounts and keys of a config that were never added before; rejects while the database cannot be reached. */
  seed(config: ServedConfig): Promise<void>
  close(): Promise<void>
}

/** Reminds for a week that the database was restored from a backup. */
const REMINDED_MS = 7 * 86_400_000

/** The effect on callers while the database is away, of all that uses it. */
const EFFECT =
  'calls that cost money are refused with billing_unavailable; calls with an Idempotency-Key or a key that was not used lately, and the admin API, with internal_error; known keys, budgets and lines stay as they are; entries of calls, webhooks and charges of videos come later'

const SILENT: Logger = { info() {}, warn() {}, error() {} }

/**
 * Opens the stores of a database and puts the config's accounts and keys into them. If that fails, all is closed again.
 *
 * @param url `memory:` is a SQLite database in memory, which has one handle for everything.
 */
export async function openDurableStores(
  url: string,
  config: ServedConfig,
  logger: Logger,
  connections = DATABASE_CONNECTIONS,
  partitions = false,
): Promise<DurableStores> {
  const opened: Promise<Database>[] = []
  let write = async (): Promise<void> => {}
  let isClosed = false
  const joined = serverLog({
    server: 'database',
    effect: EFFECT,
    ask: () => write(),
    isClosed: () => isClosed,
    logger,
  })
  const inMemory = url === 'memory:'
  const open: Handles['open'] = (of24, options = {}) => {
    if (inMemory && opened[0]) return opened[0]
    const poolSize = Math.max(1, Math.floor((of24 * connections) / 24))
    const settings = { logger: joined, poolSize, partitions, ...options }
    const opening = openDatabase(inMemory ? 'sqlite::memory:' : url, settings)
    opened.push(opening)
    return opening
  }
  const destroy = async (): Promise<void> => {
    isClosed = true
    for (const opening of (await Promise.allSettled(opened)).toReversed())
      if (opening.status === 'fulfilled') await opening.value.destroy()
  }
  try {
    const isSqlite = inMemory || url.startsWith('sqlite:')
    const stores = await storesOf({ isSqlite, open, destroy }, config, joined)
    write = stores.write
    return stores
  } catch (error) {
    await destroy()
    throw error
  }
}

/** The handles of a database. */
interface Handles {
  readonly isSqlite: boolean
  /** @param of24 how many connections it has of 24. */
  open(of24: number, options?: OpenDatabaseOptions): Promise<Database>
  /** Closes all, the last first. */
  destroy(): Promise<void>
}

async function storesOf(
  { isSqlite, open, destroy }: Handles,
  config: ServedConfig,
  logger: Logger,
): Promise<DurableStores> {
  const db = await open(5)
  const seed = async (next: ServedConfig): Promise<void> => {
    // Where the config rules, what cannot be added here is changed later.
    await seedAccountsAndKeys(db, next, { logger: next.authority === 'config' ? SILENT : logger })
  }
  const write = async (): Promise<void> => {
    const seeded_at = BigInt(Date.now())
    // No config can name a key so.
    await db
      .insertInto('seeds')
      .values({ kind: 'key', id: ' write', seeded_at })
      .onConflict((conflict) => conflict.columns(['kind', 'id']).doUpdateSet({ seeded_at }))
      .execute()
  }
  const [searches, reports, checksOfSqlite, lookUps, money, claimsOfPostgres, largeOfPostgres] =
    // The first has migrated the database. A database that is far away takes seconds for each.
    await Promise.all([
      // A handle does one thing at a time, with Postgres a few. Searches of the call log may be long, and must hold up no
      // write; a write may wait for another process's, and must hold up no key.
      open(2, { readOnly: true, atFirstQuery: true }),
      // A year of usage takes seconds, and must hold up none of these.
      open(2, { readOnly: true, atFirstQuery: true }),
      // A check of the ledger takes minutes. In Postgres it has one of the two connections for searches.
      isSqlite ? open(1, { readOnly: true, atFirstQuery: true }) : undefined,
      open(2, { readOnly: true }),
      // The end of every answer waits for the commit of its charge, which so waits for no claim and no batch of the log.
      // Nor may it wait long for rows that an operator has locked. It may wait for two in turn, for the first of which another
      // operation of this process has waited, before the ledger counts as away, and that twice would.
      open(6, { lockTimeoutMs: 150 }),
      // A claim whose record somebody has locked ends before the store counts as away.
      isSqlite ? undefined : open(5, { lockTimeoutMs: 100 }),
      // SQLite writes one thing at a time, and is soonest done when these wait in one line; Postgres writes both at once.
      isSqlite ? undefined : open(2),
      seed(config),
      // A known config has nothing to add, and a database that cannot be written must not look usable.
      write(),
    ])
  const checks = checksOfSqlite ?? searches
  const claims = claimsOfPostgres ?? db
  const large = largeOfPostgres ?? money
  // The usage counter waits no longer for locked rows either: it counts those of other accounts meanwhile.
  const counter = new SqlUsageCounter(claims, { logger, keepFineRowsMs: config.retention.usage })
  const retention = retentionOf(db, config, logger)
  const ledger = new SqlLedger(money, { checks })
  await logRestored(ledger, logger)
  // A handle with several tasks has the name of the last.
  const handles = new Map([
    [large, 'answers'],
    [claims, 'claims'],
    [reports, 'reports'],
    [searches, 'searches'],
    [lookUps, 'look_ups'],
    [money, 'money'],
    [db, 'main'],
  ])
  return {
    keys: new SqlKeyDirectory(lookUps),
    calls: new SqlCallStore(claims, { searches }),
    claims: new SqlIdempotencyStore(claims),
    answers: new SqlAnswerStore(large),
    resources: new SqlResourceStore(db),
    ledger,
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
    watchSource: new SqlWatchSource(lookUps),
    changes: new SqlChangeLog(searches),
    retention,
    database: db,
    logger,
    connections: () => Object.fromEntries(Array.from(handles, ([of, name]) => [name, connectionFigures(of)])),
    async ping() {
      await db.selectFrom('seeds').select('id').limit(1).execute()
    },
    write,
    async seed(next) {
      // First: rows that are to be kept must not be deleted while the database cannot be written.
      counter.keepFor(next.retention.usage)
      retention.keepFor(timesOf(next))
      await seed(next)
    },
    async close() {
      await retention.close()
      await counter.close()
      await destroy()
    },
  }
}

async function logRestored(ledger: SqlLedger, logger: Logger): Promise<void> {
  const found = await ledger.restored()
  if (!found || Date.now() - found.at > REMINDED_MS) return
  const [restored_at, newest_call_at] = [found.at, found.newestCallAt].map((time) =>
    time === null || time === undefined ? null : new Date(time).toISOString(),
  )
  logger.warn(
    { restored_at, newest_call_at, charges_written_again: found.chargesWrittenAgain },
    'the database was restored from a backup: it may lack calls between these times, which the providers bill',
  )
}

/** Returns what exports and deletes old calls and charges, as a config says. */
export function retentionOf(db: Database, config: ServedConfig, logger: Logger): SqlRetention {
  const { export: to } = config.retention
  return new SqlRetention(db, { logger, ...timesOf(config), ...(to && { archive: archiveOf(to) }) })
}

function archiveOf({ to, endpoint, region }: NonNullable<ServedConfig['retention']['export']>): Archive {
  if (to.startsWith('file:')) return new FolderArchive(to.slice('file:'.length))
  const [bucket = '', ...path] = to.slice('s3://'.length).split('/')
  const folder = path.filter((name) => name !== '').map((name) => `${name}/`)
  return new S3Archive({
    bucket,
    prefix: folder.join(''),
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
  })
}

function timesOf({ retention: { calls, charges } }: ServedConfig): RetentionTimes {
  return { calls, charges: charges ?? null }
}

/** All stores of a gateway. */
export type Stores = DurableStores &
  Pick<LimitStores, 'limits' | 'state' | 'lineStates' | 'limitsLogger'> & {
    /** Keeps answers for repeated requests; absent: the memory of this process does. */
    readonly cache?: CacheStore
  }

/** The stores of a gateway, and their states for metrics. */
export interface WatchedStores {
  readonly stores: Stores
  readonly states: Pick<Required<TelemetryOptions>['states'], 'stores' | 'videos' | 'database'>
  /** The watches of stores whose users report outages to them. */
  readonly watches: Readonly<
    Record<'cache' | 'idempotency' | 'resources' | 'lineSwitches' | 'lineStates', StoreWatch>
  >
}

/** Watches the stores of a gateway for metrics. The ledger and the call log report their states themselves. */
export function watchStores(stores: Stores): WatchedStores {
  const watches = {
    cache: new StoreWatch(),
    idempotency: new StoreWatch(),
    resources: new StoreWatch(),
    lineSwitches: new StoreWatch(),
    lineStates: new StoreWatch(),
  }
  const keys = new StoreWatch()
  const tasks = new StoreWatch()
  const tickets = new StoreWatch()
  const changes = new StoreWatch()
  const videos = new VideoCharges()
  return {
    stores: {
      ...stores,
      keys: keys.watching(stores.keys),
      tasks: tasks.watching(videos.watching(stores.tasks)),
      tickets: tickets.watching(stores.tickets),
      changes: changes.watching(stores.changes),
    },
    states: {
      stores: {
        cache: watches.cache,
        idempotency: watches.idempotency,
        kept_things: watches.resources,
        line_switches: watches.lineSwitches,
        keys,
        video_tasks: tasks,
        tickets,
        changes,
        retention: stores.retention,
        ...(stores.state && { limits: stores.state }),
        ...(stores.lineStates && { line_states: watches.lineStates }),
      },
      videos,
      database: { connections: stores.connections },
    },
    watches,
  }
}
