import type { PostgresPool } from 'kysely'
import type * as Pg from 'pg'
import type { Logger } from '../../../../core/call/index.ts'
import { timeLimit } from '../../../../core/timing/index.ts'
import { PostgresClient, READ_ONLY } from './postgres-client.ts'
import { PostgresHosts } from './postgres-hosts.ts'
import { PostgresStatements } from './postgres-statements.ts'
import { PARSERS } from './postgres-values.ts'

/** How to open a pool of connections. */
export interface PostgresPoolOptions {
  readonly url: string
  readonly readOnly: boolean
  readonly size: number
  /** How long to wait for a connection, new or in use. */
  readonly connectTimeoutMs: number
  /** Postgres cancels a statement that takes longer, and a transaction that is idle for as long. */
  readonly statementTimeoutMs: number
  /** Postgres cancels a statement that waits longer for a lock. 0: only the limit of the statement applies. */
  readonly lockTimeoutMs: number
  /** Divides the tables that grow with the calls by time. */
  readonly partitions: boolean
  readonly logger: Logger
}

/** The time beyond the limit of a statement, for the server to report that it took longer. */
const GRACE_MS = 500
/** The longest time for which a transaction waits for its process. */
const MAX_IDLE_MS = 600_000
/** A server that has disappeared is noticed this long after its last packet, plus some probes. */
const KEEP_ALIVE_MS = 10_000
const IDLE_MS = 30_000
/** How long no further connection is opened after one that could not be. */
const NO_MORE_MS = 1000
/** A server that takes this long for nothing is far away, in milliseconds. */
const FAR_MS = 10
/**
 * Connections to Postgres, as Kysely uses them. No wait is unlimited: a connection whose statement is not answered in
 * time is discarded.
 */
export class PostgresConnections implements PostgresPool {
  readonly #pool: Pg.Pool
  readonly #hosts: PostgresHosts
  readonly #readOnly: boolean
  readonly #timeoutMs: number
  readonly logger: Logger
  /** Whether tables that grow with the calls are divided by time. */
  readonly partitions: boolean
  readonly #statements = new PostgresStatements()
  readonly #sessions = new Set<number>()
  /** Kysely, too, identifies a connection by its object. */
  readonly #clients = new WeakMap<Pg.PoolClient, PostgresClient>()

  /** Most connections at a time. */
  readonly size: number
  /** Whether the server has refused a further connection, and none has been opened since. */
  #makesDo = false
  /** Lets the pool open further connections again. */
  #growing: NodeJS.Timeout | undefined
  /** When a server was found to take no more writes: older connections are no longer used. */
  #demotedAt = -Infinity

  private constructor(
    pool: Pg.Pool,
    hosts: PostgresHosts,
    { statementTimeoutMs, readOnly, size, partitions, logger }: PostgresPoolOptions,
  ) {
    this.#pool = pool
    this.size = size
    this.#hosts = hosts
    this.#readOnly = readOnly
    this.#timeoutMs = statementTimeoutMs + GRACE_MS
    this.logger = logger
    this.partitions = partitions
    // A connection in use may break while its transaction is idle; the next statement fails then.
    pool.on('connect', (client) => {
      client.on('error', () => {})
      this.#sessions.add(sessionOf(client))
      if (!this.#growing) this.#makesDo = false
      const demoted = (openedAt: number): void => this.#leaveDemoted(openedAt)
      this.#clients.set(client, new PostgresClient(client, this.#timeoutMs, this.#statements, demoted))
    })
    pool.on('remove', (client) => this.#sessions.delete(sessionOf(client)))
    // An idle connection broke: nothing waits for it, and the pool opens another one when it is needed.
    pool.on('error', (error) => logger.info({ err: error }, 'an idle connection to the database was lost'))
  }

  /** @throws Error if the package `pg` is not installed, or the URL is not valid. */
  static async open(options: PostgresPoolOptions): Promise<PostgresConnections> {
    const { Client, Pool, types } = await loadPg()
    const { url, size, connectTimeoutMs } = options
    const getTypeParser = (oid: number, format?: 'text' | 'binary') =>
      (format !== 'binary' && PARSERS.get(oid)) || types.getTypeParser(oid, format)
    const hosts = new PostgresHosts(url)
    // A URL that is not valid throws here, and not only when a connection to its server is needed.
    for (const connectionString of hosts.urls) new Client({ connectionString })
    const pool = new Pool({
      connectionString: hosts.current,
      onConnect: preparing(options, hosts.mustWrite),
      fallback_application_name: 'express-model-gateway',
      max: size,
      min: Math.ceil(size / 2),
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
      types: { getTypeParser: getTypeParser as typeof types.getTypeParser },
    })
    return new PostgresConnections(pool, hosts, options)
  }

  get options(): object {
    return this.#pool.options
  }

  get figures() {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  /** The sessions of the server behind these connections. */
  get sessions(): readonly number[] {
    return [...this.#sessions]
  }

  async connect(): Promise<PostgresClient> {
    for (;;) {
      const client = this.#clients.get(await this.#connectToAny()) as PostgresClient
      if (client.openedAt > this.#demotedAt) return client
      client.release(true)
    }
  }

  /** Tries each server once, from the last that served on, and waits at last for a connection that is open. */
  async #connectToAny(): Promise<Pg.PoolClient> {
    for (let tried = 1; ; tried++) {
      const host = this.#hosts.current
      try {
        return await this.#pool.connect()
      } catch (error) {
        // All connections are in use: no fault of the server's.
        if ((error as Error).message === 'timeout exceeded when trying to connect') throw error
        this.#leave(host)
        if (tried < this.#hosts.count) continue
        if (tried > this.#hosts.count || this.#pool.totalCount === 0) throw error
        this.#makeDo(error)
      }
    }
  }

  /** Has those who need a connection wait for one that is open: others may have the last that the server gives. */
  #makeDo(error: unknown): void {
    if (!this.#makesDo && this.#sessions.size > 0) {
      this.#makesDo = true
      this.logger.warn({ err: error }, 'no further connection to the database: those that are open serve')
    }
    this.#pool.options.max = 1
    this.#growing ??= setTimeout(() => {
      this.#growing = undefined
      this.#pool.options.max = this.size
    }, NO_MORE_MS).unref()
  }

  #leave(host: string): void {
    if (this.#hosts.count === 1) return
    this.#hosts.leave(host)
    Object.assign(this.#pool.options, { connectionString: this.#hosts.current })
  }

  /** A primary has become a standby, and its connections still stand. */
  #leaveDemoted(openedAt: number): void {
    if (this.#readOnly) return
    // Connections from before say so one by one.
    if (openedAt <= this.#demotedAt) return
    this.#demotedAt = performance.now()
    this.#leave(this.#hosts.current)
  }

  /**
   * Opens the connections that stay open while they are idle: half of them, and all of them to a server far away. To such a
   * one, a connection takes several round trips, for which calls would wait.
   *
   * @throws Error if a pooler gives several of them one session.
   */
  async openKept(): Promise<void> {
    if ((await this.#distance()) >= FAR_MS) this.#pool.options.min = this.size
    const opening = Array.from({ length: this.#pool.options.min ?? 0 }, () => this.#pool.connect())
    const sessions = new Set<number>()
    let open = 0
    for (const opened of await Promise.allSettled(opening)) {
      if (opened.status === 'fulfilled') {
        open++
        sessions.add(sessionOf(opened.value))
        opened.value.release()
      } else
        this.logger.warn({ err: opened.reason }, 'a connection to the database could not be opened ahead')
    }
    // Settings and prepared statements of one connection would be those of others, and change under way.
    if (sessions.size < open)
      throw new Error('the pooler before Postgres lets connections share a session: set it to session mode')
  }

  /** Returns what a round trip takes, in milliseconds. */
  async #distance(): Promise<number> {
    const client = await this.#pool.connect()
    try {
      const asked = performance.now()
      await client.query('select 1')
      return performance.now() - asked
    } finally {
      client.release()
    }
  }

  /** Waits for earlier statements. */
  async end(): Promise<void> {
    await this.#pool.end()
  }
}

/** The server's session behind each connection. The login through a pooler reports another one. */
const sessions = new WeakMap<Pg.ClientBase, number>()

function sessionOf(client: Pg.PoolClient): number {
  return sessions.get(client) as number
}

/**
 * Returns what makes the settings of a session, in one round trip. A pooler refuses most of those that come with the login, or
 * ignores them.
 *
 * @param mustWrite refuses a standby.
 */
function preparing(
  { readOnly, connectTimeoutMs, statementTimeoutMs, lockTimeoutMs }: PostgresPoolOptions,
  mustWrite: boolean,
) {
  const settings = {
    // This replaces the default of the database or its user: the statements lock what they read, and rely on seeing what was
    // committed while they waited. On a stricter level they conflict more often, and are repeated.
    default_transaction_isolation: 'read committed',
    ...(readOnly && { default_transaction_read_only: 'on' }),
    statement_timeout: statementTimeoutMs,
    ...(lockTimeoutMs > 0 && { lock_timeout: lockTimeoutMs }),
    // A statement may take long; a process that is gone, or stopped, may not keep its locks as long.
    idle_in_transaction_session_timeout: Math.min(statementTimeoutMs, MAX_IDLE_MS),
  }
  const set = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`)
  // The pool closes idle connections itself. One that the server closes may just have got a statement. Since version 14.
  set.push(`(select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout')`)
  const prepare = `select pg_is_in_recovery() as standby, pg_backend_pid() as session, ${set.join(', ')}`
  return async (client: Pg.ClientBase): Promise<void> => {
    const { stream } = (client as Pg.PoolClient).connection
    // A server may stop behind the login.
    const cancel = timeLimit(connectTimeoutMs || statementTimeoutMs + GRACE_MS, () => stream.destroy(), true)
    try {
      const { rows } = await client.query(prepare)
      const [{ standby, session }] = rows as [{ standby: boolean; session: number }]
      sessions.set(client, session)
      // With the code that a standby itself has for a write.
      if (mustWrite && standby)
        throw Object.assign(new Error('the database is a standby, and takes no writes'), { code: READ_ONLY })
    } finally {
      cancel()
    }
  }
}

/** Loads `pg`, which only users of Postgres need to install. */
async function loadPg(): Promise<typeof Pg> {
  try {
    return await import('pg')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error('a postgres:// database needs the package pg: npm install pg', { cause: error })
  }
}
