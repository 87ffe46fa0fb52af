import type { RequestHandler } from 'express'
import type { LoadedConfig } from '../../lib/core/config/index.ts'
import { billingGuard, idempotency, LeasePool } from '../../lib/index.ts'
import {
  openDatabase,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlKeyDirectory,
  SqlLedger,
  seedAccountsAndKeys,
} from '../../lib/stores/sql/index.ts'
import type { ChainParts } from './chain.ts'

/** Everything durable in one database, with handles as the assembled gateway has them. */
export async function durableParts(
  url: string,
  config: LoadedConfig,
  limits: RequestHandler,
): Promise<ChainParts> {
  const db = await openDatabase(url)
  await seedAccountsAndKeys(db, config)
  const lookUps = await openDatabase(url, { readOnly: true, poolSize: 2 })
  const money = await openDatabase(url, { poolSize: 4 })
  const pool = new LeasePool({ ledger: new SqlLedger(money) })
  return {
    keys: new SqlKeyDirectory(lookUps),
    calls: new SqlCallStore(db),
    settledBy: 'ledger',
    guards: [
      idempotency({ store: new SqlIdempotencyStore(db), settledBy: 'ledger' }),
      limits,
      billingGuard({ pool, catalog: config.catalog }),
    ],
  }
}
