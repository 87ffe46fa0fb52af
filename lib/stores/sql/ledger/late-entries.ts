import { sql } from 'kysely'
import type { CallLogEntry } from '../../../core/call/index.ts'
import type { Settlement, SettlementResult } from '../../../ledger/index.ts'
import { CallLogWriter, type CallStore } from '../../../middleware/call-log/index.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import type { Database } from '../driver/tables.ts'
import { settleAll } from './sql-settling.ts'

/** Locks of a table that a write waits for, such as that of `create index`. Whoever waits for one holds up writes, too. */
const LOCKS = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock']
/** While entries wait, the writer looks at least every second. */
const HOLDS_MS = 3000
const FLUSH_MS = 1000
const CALLS_AT_ONCE = 200
/** With more waiting entries, settlements wait. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * The entries of settlements that were written while somebody else had locked the tables of the call log: a charge does not wait
 * for these. Repeated later, a settlement writes its entry, as the call stands then, and nothing else.
 */
export class LateEntries {
  readonly #db: Database
  readonly #writer: CallLogWriter
  readonly #settled = new WeakMap<CallLogEntry, Settlement>()
  /** By a monotonic clock. */
  #lockedUntil = Number.NEGATIVE_INFINITY

  /** @param db a Postgres. */
  constructor(db: Database) {
    this.#db = db
    this.#writer = new CallLogWriter({
      store: { append: (entries: readonly CallLogEntry[]) => this.#append(entries) } as CallStore,
      logger: connectionsOf(db).logger,
      maxQueue: Number.MAX_SAFE_INTEGER,
      maxQueueBytes: Number.MAX_SAFE_INTEGER,
      batchSize: CALLS_AT_ONCE,
      flushMs: FLUSH_MS,
      retentionMs: null,
    })
  }

  /** Whether the tables of the log were locked a moment ago. */
  get areDue(): boolean {
    return performance.now() < this.#lockedUntil && this.#writer.queuedBytes < MAX_BYTES
  }

  /** Finds out whether somebody else has locked the tables of the log, or parts of them. */
  async look(): Promise<boolean> {
    const { rows } = await sql`select from pg_locks where locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())
      and mode = any(${LOCKS}::text[]) and pid <> all(${[...connectionsOf(this.#db).backends]}::integer[])
      and (relation in ('calls'::regclass, 'call_labels'::regclass)
        or relation in (select inhrelid from pg_inherits where inhparent in ('calls'::regclass, 'call_labels'::regclass)))
      limit 1`.execute(this.#db)
    this.#lockedUntil = rows.length > 0 ? performance.now() + HOLDS_MS : Number.NEGATIVE_INFINITY
    return this.areDue
  }

  /** Keeps the entries of settlements that were written without them. */
  keep(settlements: readonly Settlement[], results: readonly SettlementResult[]): void {
    for (const [i, { kind, requestId, account, key, at, entry }] of settlements.entries()) {
      if (!entry || (kind === 'charge' && results[i] === 'fenced')) continue
      const repeated = { kind, requestId, account, key, at, entry, basis: null, draws: [], claim: null }
      this.#settled.set(entry, { ...repeated, amount: 0n })
      this.#writer.add(entry)
    }
  }

  /** Writes the entries that wait, as soon as that is possible. */
  flush(): Promise<void> {
    return this.#writer.flush()
  }

  async #append(entries: readonly CallLogEntry[]): Promise<void> {
    // A settlement that waits for the log has locked its wallets.
    if (await this.look()) throw new Error('somebody has locked the tables of the call log')
    await settleAll(
      this.#db,
      entries.map((entry) => this.#settled.get(entry) as Settlement),
    )
  }
}
