import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { bytesOfEntry } from '../../../core/call/index.ts'
import { Outage } from '../../../core/store-guard/index.ts'
import type { Settlement, SettlementResult } from '../../../ledger/index.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import type { Database } from '../driver/tables.ts'
import { settleAll } from './settle.ts'

/** How long it takes at most to find out that a table is locked. */
const PROBE_MS = 20
/** While entries wait, they are tried at least every second. */
const HOLDS_MS = 3000
const RETRY_MS = 1000
const CALLS_AT_ONCE = 200
/** With more waiting entries, settlements wait. */
const MAX_BYTES = 64 * 1024 * 1024

/** @throws the error, unless it is that of a lock. */
function whetherLocked(error: unknown): boolean {
  if (isLocked(error)) return true
  throw error
}

/** A settlement that is repeated for its entry, and the bytes of that. */
interface Late {
  readonly settlement: Settlement
  readonly bytes: number
}

/**
 * The entries of settlements that were written while the tables of the call log were locked: a charge does not wait for
 * these. Repeated later, a settlement writes its entry, as the call stands then, and nothing else.
 */
export class LateEntries {
  readonly #db: Database
  readonly #waiting: Late[] = []
  #bytes = 0
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  /** By a monotonic clock. */
  #lockedUntil = Number.NEGATIVE_INFINITY

  /** @param db a Postgres. */
  constructor(db: Database) {
    this.#db = db
  }

  /** Whether the tables of the log were locked a moment ago. */
  get areDue(): boolean {
    return performance.now() < this.#lockedUntil && this.#bytes < MAX_BYTES
  }

  /** Checks whether another transaction has locked the tables of the log, or parts of them, or waits to do so. */
  async checkLocks(): Promise<boolean> {
    const isLockedNow = await this.#db
      .transaction()
      .execute(async (trx) => {
        await sql`set local lock_timeout = ${sql.lit(PROBE_MS)}`.execute(trx)
        // To plan a write takes the locks of the write, and those of all partitions.
        for (const table of ['calls', 'call_labels'])
          await sql`explain delete from ${sql.table(table)}`.execute(trx)
      })
      .then(() => false, whetherLocked)
    this.#lockedUntil = isLockedNow ? performance.now() + HOLDS_MS : Number.NEGATIVE_INFINITY
    return this.areDue
  }

  /** Keeps the entries of settlements that were written without them. */
  keep(settlements: readonly Settlement[], results: readonly SettlementResult[]): void {
    for (const [i, { kind, requestId, account, key, at, entry }] of settlements.entries()) {
      if (!entry || (kind === 'charge' && results[i] === 'fenced')) continue
      const repeated = { kind, requestId, account, key, at, entry, basis: null, draws: [], claim: null }
      const bytes = bytesOfEntry(entry)
      this.#waiting.push({ settlement: { ...repeated, amount: 0n }, bytes })
      this.#bytes += bytes
    }
    if (this.#waiting.length === 0 || this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.flush()
    }, RETRY_MS).unref()
  }

  /** Writes the entries that wait, as soon as that is possible. */
  flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    const { logger } = connectionsOf(this.#db)
    const outage = new Outage({ store: 'entries of charges', effect: 'entries of calls come later', logger })
    const { length: waiting } = this.#waiting
    while (this.#waiting.length > 0) {
      try {
        // A settlement that waits for the log has locked its wallets.
        if (await this.checkLocks()) throw new Error('the tables of the call log are locked')
        await this.#writeSome()
      } catch (error) {
        outage.begins(error, { waiting })
        await pause(RETRY_MS, undefined, { ref: false })
      }
    }
    outage.ends()
  }

  /** Writes the entries that have waited longest. An entry whose row is locked waits alone. */
  async #writeSome(): Promise<void> {
    const batch = this.#waiting.slice(0, CALLS_AT_ONCE)
    try {
      await this.#write(batch)
    } catch (error) {
      if (!isLocked(error)) throw error
      const locked = new Set<string>()
      for (const late of batch) {
        const { requestId } = late.settlement
        if (!locked.has(requestId)) await this.#write([late]).catch(() => locked.add(requestId))
      }
      if (locked.size > 0) throw error
    }
  }

  async #write(batch: readonly Late[]): Promise<void> {
    await settleAll(
      this.#db,
      batch.map(({ settlement }) => settlement),
    )
    for (const late of batch) {
      this.#waiting.splice(this.#waiting.indexOf(late), 1)
      this.#bytes -= late.bytes
    }
  }
}
