import { sql } from 'kysely'
import { WRITE_LABELS } from '../calls/call-labels.ts'
import { type Cell, typesOf } from '../driver/columns.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writeTogether } from '../driver/write-together.ts'
import { CALL_COLUMNS } from './settlement-columns.ts'
import { WRITE_CALLS, WRITE_KNOWN_CALLS } from './settlement-statements.ts'

/** An entry that was written since has the final result of its call. */
const WRITE_LATE_CALLS = RowStatement.insert('calls', typesOf(CALL_COLUMNS), 'on conflict (id) do nothing', {
  loose: true,
})
const OF_LOG: ReadonlySet<RowStatement> = new Set([WRITE_CALLS, WRITE_KNOWN_CALLS, WRITE_LABELS])
/** Locks of a table that a write waits for, such as that of `create index`. Whoever waits for one holds up writes, too. */
const LOCKS = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock']
const LOOK_AGAIN_MS = 1000
const CALLS_AT_ONCE = 200
/** With more waiting entries, settlements wait. */
const MAX_CHARACTERS = 64_000_000

/**
 * The entries of settlements that were written while somebody else had locked the tables of the call log: a charge does not wait
 * for these. Entries that wait when their process ends are lost.
 */
export class LateEntries {
  readonly #db: Database
  readonly #calls = new Map<string, readonly Cell[]>()
  #labels: (readonly Cell[])[] = []
  #characters = 0
  /** By a monotonic clock. */
  #lockedUntil = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(db: Database) {
    this.#db = db
  }

  /** Whether the tables of the log were locked a moment ago. */
  get areDue(): boolean {
    return performance.now() < this.#lockedUntil && this.#characters < MAX_CHARACTERS
  }

  /** Finds out whether somebody else has locked the tables of the log. */
  async look(): Promise<boolean> {
    if (!isPostgres(this.#db)) return false
    const { rows } = await sql`select from pg_locks where locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())
      and relation in ('calls'::regclass, 'call_labels'::regclass) and mode = any(${LOCKS}::text[])
      and pid <> all(${[...connectionsOf(this.#db).backends]}::integer[]) limit 1`.execute(this.#db)
    if (rows.length > 0) this.#lockedUntil = performance.now() + LOOK_AGAIN_MS
    return this.areDue
  }

  /** Writes rows, those of the log later. */
  async write(writes: readonly RowWrite[]): Promise<boolean> {
    const isWritten = await writeTogether(
      this.#db,
      writes.filter(({ statement }) => !OF_LOG.has(statement)),
    )
    if (isWritten)
      for (const { statement, rows } of writes) if (OF_LOG.has(statement)) this.#keep(statement, rows)
    return isWritten
  }

  #keep(statement: RowStatement, rows: RowWrite['rows']): void {
    for (const row of rows) {
      if (statement === WRITE_LABELS) this.#labels.push(row)
      else this.#calls.set(String(row[0]), row)
      this.#characters += charactersOf(row)
    }
    this.#timer ??= setTimeout(() => void this.#writeLate(), LOOK_AGAIN_MS).unref()
  }

  async #writeLate(): Promise<void> {
    const calls = [...this.#calls].slice(0, CALLS_AT_ONCE)
    const ids = new Set<Cell | undefined>(calls.map(([id]) => id))
    const labels = this.#labels.filter(([, id]) => ids.has(id))
    try {
      await writeTogether(this.#db, [
        { statement: WRITE_LATE_CALLS, rows: calls.map(([, row]) => row) },
        { statement: WRITE_LABELS, rows: labels },
      ])
      const written = new Set(labels)
      this.#labels = this.#labels.filter((row) => !written.has(row))
      for (const [id, row] of calls) if (this.#calls.get(id) === row) this.#calls.delete(id)
      for (const row of [...labels, ...calls.map(([, cells]) => cells)]) this.#characters -= charactersOf(row)
    } catch {
      // They are still locked, or the database is away, which the ledger tells.
    }
    const isMore = this.#calls.size > 0
    if (!isMore) this.#characters = 0
    this.#timer = isMore ? setTimeout(() => void this.#writeLate(), LOOK_AGAIN_MS).unref() : undefined
  }
}

function charactersOf(row: readonly Cell[]): number {
  return row.reduce<number>((sum, cell) => sum + (typeof cell === 'string' ? cell.length : 8), 0)
}
