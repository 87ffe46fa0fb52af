import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { type PostgresPair, startPostgresPair } from '../../support/postgres-pair.ts'
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.ts'
import { Fleet } from './fleet.ts'
import { benchConfig, type LimitedSubject, limitedSubjects } from './setting.ts'
import { type BenchUpstream, startBenchUpstream } from './upstream.ts'

/** Gateway processes of a run. */
export const PROCESSES = 10

/** The token of the admin API of a run. */
export const ADMIN_TOKEN = 'admin-of-the-bench'

/** Everything that a run needs, started. */
export interface Stage {
  readonly faults: boolean
  readonly subjects: readonly LimitedSubject[]
  readonly redis: RedisCluster
  readonly postgres: PostgresPair
  readonly upstream: BenchUpstream
  readonly fleet: Fleet
  /** Ends all of it. */
  clear(): Promise<void>
}

/** Gateway processes on one Redis Cluster and one Postgres with a standby, and the lines that serve them. */
export async function setStage(faults: boolean): Promise<Stage> {
  const subjects = limitedSubjects(faults)
  const [redis, postgres, upstream, folder] = await Promise.all([
    startRedisCluster(),
    startPostgresPair(),
    startBenchUpstream(faults),
    temporaryFolder(),
  ])
  const configFile = join(folder.path, 'gateway.json')
  await writeFile(configFile, JSON.stringify(benchConfig(upstream.url, subjects)))
  const fleet = new Fleet({
    GATEWAY_CONFIG: configFile,
    DATABASE_URL: postgres.url,
    DATABASE_CONNECTIONS: '12',
    REDIS_URL: redis.url,
    LOG_LEVEL: 'warn',
    ADMIN_TOKEN,
  })
  const clear = async () => {
    await fleet.stop()
    await Promise.all([upstream.close(), redis.close(), postgres.close(), folder.remove()])
  }
  try {
    await Promise.all(Array.from({ length: PROCESSES }, () => fleet.start()))
  } catch (error) {
    await clear()
    throw error
  }
  return { faults, subjects, redis, postgres, upstream, fleet, clear }
}
