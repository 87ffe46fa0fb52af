import type { KeyDirectory, KeyRecord } from '../../../middleware/authenticate/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { toList, toNumber } from '../driver/nullable-cells.ts'
import type { Database } from '../driver/tables.ts'

/**
 * A key directory in a database. Each look-up queries it. `authenticate` caches the results for a few seconds, so that
 * a change reaches every process within that time.
 *
 * @example
 * const keys = new SqlKeyDirectory(await openDatabase('sqlite:.data/gateway.db'))
 * app.use('/v1', authenticate({ keys }))
 */
export class SqlKeyDirectory implements KeyDirectory {
  readonly #db: Database
  readonly #bySecretHash: ReturnType<typeof compileLookup>

  constructor(db: Database) {
    checkDatabase('SqlKeyDirectory', db)
    this.#db = db
    this.#bySecretHash = compileLookup(db)
  }

  async find(secretHash: string): Promise<KeyRecord | undefined> {
    const { rows } = await this.#db.executeQuery<Row>({ ...this.#bySecretHash, parameters: [secretHash] })
    const row = rows[0]
    return row && toRecord(row)
  }

  async findAll(secretHashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>> {
    const found = new Map<string, KeyRecord>()
    for (let i = 0; i < secretHashes.length; i += AT_A_TIME) {
      const some = secretHashes.slice(i, i + AT_A_TIME)
      const rows = await keyRows(this.#db)
        .select('keys.secret_hash')
        .where('keys.secret_hash', 'in', some)
        .execute()
      for (const row of rows) found.set(row.secret_hash, toRecord(row))
    }
    return found
  }
}

/** Databases bound the number of parameters of a statement. */
const AT_A_TIME = 500

type Row = Awaited<ReturnType<ReturnType<typeof lookup>['executeTakeFirstOrThrow']>>

/** Compiles the query once: only the hash differs between look-ups. */
function compileLookup(db: Database) {
  return lookup(db, '').compile()
}

function lookup(db: Database, secretHash: string) {
  return keyRows(db).where('keys.secret_hash', '=', secretHash)
}

function keyRows(db: Database) {
  return db
    .selectFrom('keys')
    .innerJoin('accounts', 'accounts.id', 'keys.account')
    .select([
      'keys.id',
      'keys.account',
      'keys.enabled',
      'keys.expires_at',
      'keys.allow_ips',
      'keys.allow_models',
      'keys.rpm',
      'keys.tpm',
      'accounts.rpm as account_rpm',
      'accounts.tpm as account_tpm',
      'accounts.concurrency as account_concurrency',
      'accounts.regions',
      'accounts.line_regions',
    ])
}

function toRecord(row: Row): KeyRecord {
  return {
    id: row.id,
    account: {
      id: row.account,
      limits: {
        rpm: toNumber(row.account_rpm),
        tpm: toNumber(row.account_tpm),
        concurrency: toNumber(row.account_concurrency),
      },
      regions: toList(row.regions),
      lineRegions: toList(row.line_regions),
    },
    enabled: row.enabled !== 0,
    expiresAt: toNumber(row.expires_at),
    allowIps: toList(row.allow_ips),
    allowModels: toList(row.allow_models),
    limits: { rpm: toNumber(row.rpm), tpm: toNumber(row.tpm) },
  }
}
