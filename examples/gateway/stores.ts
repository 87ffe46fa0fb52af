import { type KeyDirectory, type Logger, MemoryCallStore, memoryKeyDirectory } from 'express-model-gateway'
import type { CallStore } from 'express-model-gateway/call-log'
import type { GatewayConfig } from 'express-model-gateway/catalog'
import { openDatabase, SqlCallStore, SqlKeyDirectory, seedAccountsAndKeys } from 'express-model-gateway/sql'

/** Everything the gateway keeps, and how to let go of it. */
export interface Stores {
  readonly keys: KeyDirectory
  readonly calls: CallStore
  /** Rejects while the stores cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** Opens the stores that DATABASE_URL names and puts the config's accounts and keys into them. */
export async function openStores(url: string, config: GatewayConfig, logger: Logger): Promise<Stores> {
  if (url === 'memory:') {
    const nothing = async (): Promise<void> => {}
    return { keys: memoryKeyDirectory(config), calls: new MemoryCallStore(), ping: nothing, close: nothing }
  }
  const db = await openDatabase(url, { logger })
  await seedAccountsAndKeys(db, config, { logger })
  // Searches of the call log may be long; with a handle of their own they hold up no write.
  const reader = await openDatabase(url, { logger, readOnly: true })
  return {
    keys: new SqlKeyDirectory(db),
    calls: new SqlCallStore(db, { searches: reader }),
    async ping() {
      await db.selectFrom('seeds').select('id').limit(1).execute()
    },
    async close() {
      await reader.destroy()
      await db.destroy()
    },
  }
}
