import type { Logger } from 'express-model-gateway'
import type { GatewayConfig } from 'express-model-gateway/config'
import {
  type Archive,
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
  SqlKeptStore,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlLedger,
  SqlLineSwitchStore,
  SqlOperatorStore,
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
import type { DurableStores } from './durable-stores.ts'

const SILENT: Logger = { info() {}, warn() {}, error() {} }

/** Opens the stores of a database and puts the config's accounts and keys into them. If that fails, all is closed again. */
export async function openSqlStores(
  url: string,
  config: GatewayConfig,
  logger: Logger,
  connections: number,
): Promise<DurableStores> {
  const opened: Database[] = []
  const open: Handles['open'] = async (of24, options = {}) => {
    const poolSize = Math.max(1, Math.floor((of24 * connections) / 24))
    const db = await openDatabase(url, { logger, poolSize, ...options })
    opened.push(db)
    return db
  }
  const destroy = async (): Promise<void> => {
    for (const db of opened.toReversed()) await db.destroy()
  }
  try {
    return await storesOf({ isSqlite: url.startsWith('sqlite:'), open, destroy }, config, logger)
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
  config: GatewayConfig,
  logger: Logger,
): Promise<DurableStores> {
  const db = await open(5)
  const seed = async (next: GatewayConfig): Promise<void> => {
    // Where the config rules, what cannot be added here is changed later.
    await seedAccountsAndKeys(db, next, { logger: next.authority === 'config' ? SILENT : logger })
  }
  await seed(config)
  // A handle does one thing at a time, with Postgres a few. Searches of the call log may be long, and must hold up no
  // write; a write may wait for another process's, and must hold up no key.
  const searches = await open(2, { readOnly: true })
  // A year of usage takes seconds, and must hold up none of these.
  const reports = await open(2, { readOnly: true })
  // A check of the ledger takes minutes. In Postgres it has one of the two connections for searches.
  const checks = isSqlite ? await open(1, { readOnly: true }) : searches
  const lookUps = await open(2, { readOnly: true })
  // The end of every answer waits for the commit of its charge, which so waits for no claim and no batch of the log.
  // Nor may it wait long for rows that an operator has locked. It may wait for two in turn, for the first of which another
  // operation of this process has waited, before the ledger counts as away, and that twice would.
  const money = await open(6, { lockTimeoutMs: 150 })
  // A claim whose record somebody has locked ends before the store counts as away.
  const claims = isSqlite ? db : await open(5, { lockTimeoutMs: 100 })
  // SQLite writes one thing at a time, and is soonest done when these wait in one line; Postgres writes both at once.
  const large = isSqlite ? money : await open(2)
  // What counts usage waits no longer for locked rows either: it has those of other accounts meanwhile.
  const counter = new SqlUsageCounter(claims, { logger, fineRetentionMs: config.retention.usage })
  const retention = retentionOf(db, config, logger)
  return {
    keys: new SqlKeyDirectory(lookUps),
    calls: new SqlCallStore(claims, { searches }),
    claims: new SqlIdempotencyStore(claims),
    answers: new SqlAnswerStore(large),
    kept: new SqlKeptStore(db),
    ledger: new SqlLedger(money, { checks }),
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
    watchSource: new SqlWatchSource(searches),
    changes: new SqlChangeLog(searches),
    settledByLedger: true,
    retention,
    database: db,
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

/** Returns what exports and deletes old calls and charges, as a config says. */
export function retentionOf(db: Database, config: GatewayConfig, logger: Logger): SqlRetention {
  const { export: to } = config.retention
  return new SqlRetention(db, { logger, ...timesOf(config), ...(to && { archive: archiveOf(to) }) })
}

function archiveOf({ to, endpoint, region }: NonNullable<GatewayConfig['retention']['export']>): Archive {
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

function timesOf({ retention: { calls, charges } }: GatewayConfig): RetentionTimes {
  return { calls, charges: charges ?? null }
}
