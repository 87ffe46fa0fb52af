/** The chain with idempotency, and limits in a Redis of its own, which shares the two cores. */
import { Redis } from 'ioredis'
import { idempotency, rateLimit } from '../../../lib/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { startRedis } from '../../support/redis-server.ts'
import { benchConfig, serveChain } from '../chain.ts'
import { onBothCores } from '../processes.ts'

const { port } = await startRedis({ runWith: onBothCores() })
const redis = new Redis(port, '127.0.0.1', { enableAutoPipelining: true })
// The server goes when this process exits, which a signal alone does not count as.
process.once('SIGTERM', () => process.exit())
serveChain(benchConfig(), { guards: [idempotency(), rateLimit({ store: new RedisLimitStore({ redis }) })] })
