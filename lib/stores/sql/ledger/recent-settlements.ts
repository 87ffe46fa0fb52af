import { formatAmount } from '../../../core/catalog/index.ts'
import type { Settlement, SettlementResult } from '../../../ledger/index.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { noteRestored } from './restored.ts'
import { settleAll } from './settle.ts'

/** Charges that a process keeps, without their log entries, for so long. */
const MOST_KEPT = 10_000
const KEPT_MS = 600_000
const CHECK_EVERY_MS = 10_000
const WRITTEN_AT_ONCE = 200
const LOOKED_UP_AT_ONCE = 1000

/** Records of Idempotency-Keys whose calls have run. Unless there is one, the key of a charged call would be free. */
const RECORD_CLAIMS = RowStatement.insert(
  'idempotency',
  { id: 'text', owner: 'text', fingerprint: 'text', state: 'text', expires_at: 'bigint' },
  `on conflict (id) do update set state = 'completed', expires_at = excluded.expires_at
    where idempotency.owner = excluded.owner`,
  { loose: true },
)

const FIND_KEYS = RowStatement.select<{ id: string }>(
  { id: 'text' },
  'select found.id from given join keys as found on found.id = given.id',
)

interface Kept {
  readonly settlement: Settlement
  readonly at: number
}

/**
 * The last charges that Postgres has confirmed to this process. If it no longer knows one of them, it was restored from a backup:
 * they are written again, and that is noted for `check`.
 */
export class RecentSettlements {
  readonly #db: Database
  #kept: Kept[] = []
  /** The last one that was found at a check. A restore loses it, or one that came later. */
  #lastFound: Kept | undefined
  #checkedAt = performance.now()
  #checking: Promise<void> | undefined

  /** @param db a Postgres. */
  constructor(db: Database) {
    this.#db = db
  }

  keep(settlements: readonly Settlement[], results: readonly SettlementResult[]): void {
    const at = performance.now()
    for (const [i, settlement] of settlements.entries()) {
      if (results[i] !== 'written') continue
      // One that is undone is not written again.
      if (settlement.kind === 'charge') this.#kept.push({ settlement: withoutEntry(settlement), at })
      else this.#drop(settlement.requestId)
    }
    if (this.#kept.length > MOST_KEPT) this.#kept = this.#kept.slice(-MOST_KEPT / 2)
  }

  /** Checks from time to time whether the charges are still there. Never rejects. */
  async check(): Promise<void> {
    if (performance.now() - this.#checkedAt < CHECK_EVERY_MS) return
    await this.checkNow()
  }

  /** Checks it at once. */
  checkNow(): Promise<void> {
    this.#checkedAt = performance.now()
    this.#checking ??= this.#check()
      .catch((error: unknown) =>
        connectionsOf(this.#db).logger.info({ err: error }, 'the last charges were not checked'),
      )
      .finally(() => {
        this.#checking = undefined
      })
    return this.#checking
  }

  async #check(): Promise<void> {
    const oldest = performance.now() - KEPT_MS
    this.#kept = this.#kept.filter(({ at }) => at > oldest)
    const last = this.#kept.at(-1)
    if (!last) return
    const from = this.#lastFound ? this.#kept.indexOf(this.#lastFound) : 0
    const lost = await this.#firstLost(this.#kept.slice(Math.max(0, from)))
    if (!lost) {
      this.#lastFound = last
      return
    }
    const { logger } = connectionsOf(this.#db)
    logger.error(
      { request: lost.settlement.requestId },
      'the database has lost charges that it had confirmed, as one that was restored from a backup: they are written again',
    )
    const at = Date.now()
    await noteRestored(this.#db, { at, charges: 0, amount: 0n, unknownKeys: [] })
    const again = this.#kept.map(({ settlement }) => settlement)
    let [charges, amount] = [0, 0n]
    for (let from = 0; from < again.length; from += WRITTEN_AT_ONCE) {
      const written = await this.#write(again.slice(from, from + WRITTEN_AT_ONCE))
      charges += written.length
      for (const settlement of written) amount += settlement.amount
    }
    this.#lastFound = last
    const unknownKeys = await this.#unknownKeys(again)
    await noteRestored(this.#db, { at, charges, amount, unknownKeys })
    logger.warn(
      { charges, amount: formatAmount(amount), of: again.length, unknownKeys },
      'lost charges are written again; GET /admin/ledger/check has the time for which to compare the bills of the providers',
    )
  }

  /** Returns the first of some charges that the database does not know, and that was not undone meanwhile. */
  async #firstLost(charges: readonly Kept[]): Promise<Kept | undefined> {
    for (let from = 0; from < charges.length; from += LOOKED_UP_AT_ONCE) {
      const some = charges.slice(from, from + LOOKED_UP_AT_ONCE)
      const ids = some.map(({ settlement }) => settlement.requestId)
      const rows = await this.#db
        .selectFrom('charges')
        .select('request_id')
        .where('request_id', 'in', ids)
        .execute()
      const found = new Set(rows.map(({ request_id: id }) => id))
      const lost = some.find((each) => !found.has(each.settlement.requestId) && this.#kept.includes(each))
      if (lost) return lost
    }
    return undefined
  }

  /** Returns those that were written. */
  async #write(batch: readonly Settlement[]): Promise<Settlement[]> {
    const results = await settleAll(
      this.#db,
      batch.map((settlement) => ({ ...settlement, claim: null })),
      false,
    )
    const written = batch.filter((_, i) => results[i] === 'written')
    await RECORD_CLAIMS.run(
      this.#db,
      written.flatMap(({ claim }) =>
        // Its content is not known: a repetition counts as other content, and does not run again.
        claim ? [[claim.id, claim.owner, '', 'completed', claim.keepUntil]] : [],
      ),
    )
    return written
  }

  /** Returns the keys of settlements that the database does not know. */
  async #unknownKeys(settlements: readonly Settlement[]): Promise<string[]> {
    const keys = [...new Set(settlements.flatMap(({ key }) => key ?? []))]
    const { rows } = await FIND_KEYS.run(
      this.#db,
      keys.map((id) => [id]),
    )
    const known = new Set(rows.map(({ id }) => id))
    return keys.filter((id) => !known.has(id))
  }

  #drop(requestId: string): void {
    this.#kept = this.#kept.filter(({ settlement }) => settlement.requestId !== requestId)
  }
}

/** Returns a charge without its log entry. Some members of a charge of a pool are accessors, which are not copied with the others. */
function withoutEntry(charge: Settlement): Required<Settlement> {
  const { kind, requestId, account, key, amount, cost = null, at, usage = null } = charge
  const { basis, budgets, draws, claim } = charge
  return { kind, requestId, account, key, amount, cost, at, usage, basis, budgets, draws, claim, entry: null }
}
