/** The whole chain: limits in Redis; keys, records, money and call log in Postgres. The engines share the two cores. */
import { Redis } from 'ioredis'
import { rateLimit } from '../../../lib/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { startPostgres } from '../../support/postgres-server.ts'
import { startRedis } from '../../support/redis-server.ts'
import { benchConfig, serveChain } from '../chain.ts'
import { durableParts } from '../durable-parts.ts'
import { onBothCores } from '../processes.ts'

const runWith = onBothCores()
const { port } = await startRedis({ runWith })
const postgres = await startPostgres({ fsync: true, runWith })
const redis = new Redis(port, '127.0.0.1', { enableAutoPipelining: true })
process.once('SIGTERM', () => void postgres.close().finally(() => process.exit()))

const config = benchConfig()
const limits = rateLimit({ store: new RedisLimitStore({ redis }) })
serveChain(config, await durableParts(await postgres.createDatabase(), config, limits))
