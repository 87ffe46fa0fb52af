import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres-server.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { Fleet } from './fleet.ts'
import { benchConfig, type LimitedSubject, limitedSubjects } from './setting.ts'
import { type BenchUpstream, startBenchUpstream } from './upstream.ts'

/** Gateway processes of a run. */
export const PROCESSES = 2

/** What opens the admin API of a run. */
export const ADMIN_TOKEN = 'admin-of-the-bench'

/** Everything that a run needs, started. */
export interface Stage {
  readonly faults: boolean
  readonly subjects: readonly LimitedSubject[]
  readonly redis: RedisServer
  readonly postgres: PostgresServer
  /** URL of the database that the processes share. */
  readonly database: string
  readonly upstream: BenchUpstream
  readonly fleet: Fleet
  /** Ends all of it. */
  clear(): Promise<void>
}

/** Two gateway processes on one Redis and one Postgres, and the lines that serve them. */
export async function setStage(faults: boolean): Promise<Stage> {
  const subjects = limitedSubjects(faults)
  const [redis, postgres, upstream, folder] = await Promise.all([
    startRedis(),
    startPostgres(),
    startBenchUpstream(faults),
    temporaryFolder(),
  ])
  const database = await postgres.createDatabase()
  const configFile = join(folder.path, 'gateway.json')
  await writeFile(configFile, JSON.stringify(benchConfig(upstream.url, subjects)))
  const fleet = new Fleet({
    GATEWAY_CONFIG: configFile,
    DATABASE_URL: database,
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    LOG_LEVEL: 'warn',
    ADMIN_TOKEN,
  })
  const clear = async () => {
    await fleet.stop()
    await Promise.all([upstream.close(), redis.close(), postgres.close(), folder.remove()])
  }
  try {
    for (let i = 0; i < PROCESSES; i++) await fleet.start()
  } catch (error) {
    await clear()
    throw error
  }
  return { faults, subjects, redis, postgres, database, upstream, fleet, clear }
}
