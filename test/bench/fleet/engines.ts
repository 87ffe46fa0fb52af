/** The engines that all gateways of a fleet share, and what they have done so far. */
import type { Redis } from 'ioredis'
import { type PostgresServer, startPostgres } from '../../support/postgres-server.ts'
import { descendantsOf, runningProcesses } from '../../support/processes.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { cpuSecondsOf } from '../processes.ts'

/** Sums since the engines have started. */
export interface EngineWork {
  readonly postgresCpu: number
  readonly redisCpu: number
  readonly transactions: number
  /** Rows inserted, updated and deleted. */
  readonly rows: number
  /** The bytes that Postgres has written to its log. */
  readonly walBytes: number
  readonly diskBytes: number
  readonly redisCommands: number
}

/** A Postgres and a Redis that are empty. */
export class Engines {
  readonly databaseUrl: string
  readonly redisUrl: string
  readonly #postgres: PostgresServer
  readonly #redis: RedisServer
  readonly #client: Redis

  private constructor(postgres: PostgresServer, redis: RedisServer, databaseUrl: string) {
    this.#postgres = postgres
    this.#redis = redis
    this.#client = redis.client()
    this.databaseUrl = databaseUrl
    this.redisUrl = `redis://127.0.0.1:${redis.port}`
  }

  static async start(): Promise<Engines> {
    const [postgres, redis] = await Promise.all([startPostgres({ fsync: true }), startRedis()])
    return new Engines(postgres, redis, await postgres.createDatabase())
  }

  async work(): Promise<EngineWork> {
    const [row] = await this.#postgres.query(
      `select xact_commit as transactions, tup_inserted + tup_updated + tup_deleted as rows,
        pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal, pg_database_size(datname) as disk
        from pg_stat_database where datname = current_database()`,
      this.databaseUrl,
    )
    const commands = /total_commands_processed:(\d+)/.exec(await this.#client.info('stats'))?.[1]
    const children = runningProcesses().filter(({ parent }) => parent === process.pid)
    const cpuOf = (program: string) =>
      children
        .filter(({ command }) => command.includes(program))
        .flatMap(({ pid }) => [pid, ...descendantsOf(pid).map((each) => each.pid)])
        .reduce((sum, pid) => sum + (cpuSecondsOf(pid) ?? 0), 0)
    return {
      postgresCpu: cpuOf('postgres'),
      redisCpu: cpuOf('redis-server'),
      transactions: Number(row?.transactions),
      rows: Number(row?.rows),
      walBytes: Number(row?.wal),
      diskBytes: Number(row?.disk),
      redisCommands: Number(commands),
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#redis.close(), this.#postgres.close()])
  }
}
