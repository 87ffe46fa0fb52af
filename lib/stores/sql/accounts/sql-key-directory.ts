import { sql } from 'kysely'
import type { KeyDirectory, KeyRecord } from '../../../core/key-directory/index.ts'
import { toList, toNumber, toTags } from '../driver/columns.ts'
import { checkDatabase } from '../driver/database.ts'
import { Groups } from '../driver/groups.ts'
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
  readonly #lookUps = new Groups<string, KeyRecord | undefined>({
    atOnce: AT_ONCE,
    ask: (hashes) => this.#findGroup(hashes),
  })

  constructor(db: Database) {
    checkDatabase('SqlKeyDirectory', db)
    this.#db = db
    this.#bySecretHash = compileLookup(db)
  }

  find(secretHash: string): Promise<KeyRecord | undefined> {
    return this.#lookUps.run(secretHash)
  }

  async #findGroup(hashes: readonly string[]): Promise<(KeyRecord | undefined)[]> {
    if (hashes.length === 1) return [await this.#find(hashes[0] as string)]
    const found = await this.findAll(hashes)
    return hashes.map((hash) => found.get(hash))
  }

  async #find(secretHash: string): Promise<KeyRecord | undefined> {
    const { rows } = await this.#db.executeQuery<Row>({
      ...this.#bySecretHash,
      parameters: [secretHash, secretHash],
    })
    // Another key may have been given the secret before this one's current one.
    const row = rows.find(({ secret_hash }) => secret_hash === secretHash) ?? rows[0]
    return row && toRecord(row, secretHash)
  }

  async findAll(secretHashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>> {
    const found = new Map<string, KeyRecord>()
    for (let i = 0; i < secretHashes.length; i += AT_A_TIME) {
      const some = secretHashes.slice(i, i + AT_A_TIME)
      const rows = await keyRows(this.#db)
        .where(({ eb, or }) => or([eb('keys.secret_hash', 'in', some), eb('keys.previous_hash', 'in', some)]))
        .execute()
      const asked = new Set(some)
      // Another key may have been given the secret before this one's current one, which comes last.
      for (const name of ['previous_hash', 'secret_hash'] as const)
        for (const row of rows) {
          const hash = row[name]
          if (hash !== null && asked.has(hash)) found.set(hash, toRecord(row, hash))
        }
    }
    return found
  }
}

/** Look-ups of single keys under way at a time. */
const AT_ONCE = 2

/** Databases bound the number of parameters of a statement. */
const AT_A_TIME = 500

type Row = Awaited<ReturnType<ReturnType<typeof lookup>['executeTakeFirstOrThrow']>>

/** Compiles the query once: only the hash differs between look-ups. */
function compileLookup(db: Database) {
  return lookup(db, '').compile()
}

function lookup(db: Database, secretHash: string) {
  const given = sql.val(secretHash)
  return keyRows(db).where(({ eb, or }) =>
    or([eb('keys.secret_hash', '=', given), eb('keys.previous_hash', '=', given)]),
  )
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
      'keys.tags',
      'keys.secret_hash',
      'keys.previous_hash',
      'keys.previous_until',
      'accounts.rpm as account_rpm',
      'accounts.tpm as account_tpm',
      'accounts.concurrency as account_concurrency',
      'accounts.regions',
      'accounts.line_regions',
      'accounts.suspended',
    ])
}

function toRecord(row: Row, secretHash: string): KeyRecord {
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
      suspended: row.suspended !== 0,
    },
    enabled: row.enabled !== 0,
    expiresAt: toNumber(row.expires_at),
    allowIps: toList(row.allow_ips),
    allowModels: toList(row.allow_models),
    limits: { rpm: toNumber(row.rpm), tpm: toNumber(row.tpm) },
    ...(row.tags !== null && { tags: toTags(row.tags) }),
    ...(row.secret_hash !== secretHash && { secretUntil: Number(row.previous_until) }),
  }
}
