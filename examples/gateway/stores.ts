import type { Logger } from 'express-model-gateway'
import type { GatewayConfig } from 'express-model-gateway/config'
import type { DurableStores } from './durable-stores.ts'
import { memoryStores } from './memory-stores.ts'
import { DATABASE_CONNECTIONS } from './settings.ts'

/** Opens the stores that DATABASE_URL names and puts the config's accounts and keys into them. */
export async function openDurableStores(
  url: string,
  config: GatewayConfig,
  logger: Logger,
  connections = DATABASE_CONNECTIONS,
): Promise<DurableStores> {
  if (url === 'memory:') return memoryStores(config, logger)
  // A quarter of all that a gateway loads.
  const { openSqlStores } = await import('./sql-stores.ts')
  return openSqlStores(url, config, logger, connections)
}
