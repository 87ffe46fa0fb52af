/**
 * A `LimitStore` on Node's SQLite. It shares limits between all processes of one machine without a Redis. The toolkit's
 * contract suites check it.
 */

import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { StoreAway } from 'express-model-gateway'
import type { Count, Demand, Limit, LimitStore, Verdict } from 'express-model-gateway/rate-limit'

/** A slot may become free any time. */
const SLOT_WAIT_MS = 1000

/** Options of {@link SqliteLimitStore}. */
export interface SqliteLimitStoreOptions {
  /** The file that all processes share. */
  file: string
  /** How long the slots of a killed process stay taken, in milliseconds. Defaults to 30000. */
  slotLeaseMs?: number
  /** Returns the time in milliseconds since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

const TABLES = `
  pragma journal_mode = wal;
  pragma synchronous = off;
  create table if not exists counters (key text primary key, used integer not null, ends integer not null) without rowid;
  create table if not exists slots (key text, id text, ends integer not null, primary key (key, id)) without rowid;
`

/** How long a process waits for a write of another, in milliseconds. The wait blocks the event loop. */
const BUSY_MS = 50

/** Counts requests, tokens and slots of all processes of a machine. It does not prolong waits, which is optional for a store. */
export class SqliteLimitStore implements LimitStore {
  readonly #db: DatabaseSync
  readonly #slotLeaseMs: number
  readonly #now: () => number
  readonly #timer: NodeJS.Timeout
  /** The slots of calls in this process, as JSON of key and id. Their leases are renewed. */
  readonly #held = new Set<string>()
  readonly #readCount: StatementSync
  readonly #writeCount: StatementSync
  readonly #countSlots: StatementSync
  readonly #writeSlot: StatementSync
  readonly #removeSlot: StatementSync

  constructor({ file, slotLeaseMs = 30_000, now = Date.now }: SqliteLimitStoreOptions) {
    mkdirSync(dirname(file), { recursive: true })
    // Processes that start at the same time wait for each other; later waits are short.
    this.#db = new DatabaseSync(file, { timeout: 5000 })
    this.#db.exec(TABLES)
    this.#db.exec(`pragma busy_timeout = ${BUSY_MS}`)
    this.#slotLeaseMs = slotLeaseMs
    this.#now = now
    const prepare = (sql: string) => this.#db.prepare(sql)
    this.#readCount = prepare('select used, ends from counters where key = ? and ends > ?')
    this.#writeCount = prepare('insert or replace into counters values (?, ?, ?)')
    this.#countSlots = prepare('select count(*) as taken from slots where key = ? and ends > ? and id <> ?')
    this.#writeSlot = prepare('insert or replace into slots values (?, ?, ?)')
    this.#removeSlot = prepare('delete from slots where key = ? and id = ?')
    this.#timer = setInterval(() => this.renew(), slotLeaseMs / 3).unref()
  }

  /** Checks all limits before it changes any, in one transaction, so that no process sees half of a demand. */
  admit(demand: Demand): Verdict | Promise<Verdict> {
    try {
      return this.#inTransaction(() => this.#decide(demand))
    } catch (error) {
      // `StoreAway` lets `onStoreError` decide about the request.
      return Promise.reject(new StoreAway('limits', { cause: error }))
    }
  }

  hold({ id, slots }: Demand): void {
    for (const { key } of slots) {
      this.#held.add(JSON.stringify([key, id]))
      // If this fails, the next renewal adds the slot.
      this.#ifItAnswers(() => this.#writeSlot.run(key, id, this.#now() + this.#slotLeaseMs))
    }
  }

  release({ id, slots }: Demand): void {
    for (const { key } of slots) {
      this.#held.delete(JSON.stringify([key, id]))
      // If this fails, the slot is free when its lease ends.
      this.#ifItAnswers(() => this.#removeSlot.run(key, id))
    }
  }

  /** Renews the leases of this process and deletes expired rows. A timer calls it. */
  renew(): void {
    const now = this.#now()
    this.#ifItAnswers(() =>
      this.#inTransaction(() => {
        for (const slot of this.#held) {
          const [key, id] = JSON.parse(slot) as [string, string]
          this.#writeSlot.run(key, id, now + this.#slotLeaseMs)
        }
        this.#db.prepare('delete from slots where ends <= ?').run(now)
        this.#db.prepare('delete from counters where ends <= ?').run(now)
      }),
    )
  }

  /** Closes the store. Call it behind the last call. */
  close(): void {
    clearInterval(this.#timer)
    this.#db.close()
  }

  #decide({ id, charges, slots, windowMs }: Demand): Verdict {
    const now = this.#now()
    const counts = charges.map(({ key }) => this.#count(key, now, windowMs))
    let refusedBy: Limit | undefined
    let waitMs = 0
    for (const [i, charge] of charges.entries()) {
      const { used, resetMs } = counts[i] as Count
      // Report the limit with the longest wait: after a shorter wait, it would still refuse.
      if (used + charge.cost <= charge.max || resetMs <= waitMs) continue
      refusedBy = charge
      waitMs = resetMs
    }
    const full = slots.find(({ key, max }) => this.#taken(key, now, id) >= max)
    if (refusedBy) return { refusedBy, waitMs, counts }
    if (full) return { refusedBy: full, waitMs: SLOT_WAIT_MS, counts }

    for (const { key } of slots) {
      this.#writeSlot.run(key, id, now + this.#slotLeaseMs)
      this.#held.add(JSON.stringify([key, id]))
    }
    const after = charges.map(({ key, cost }, i): Count => {
      const { used, resetMs } = counts[i] as Count
      this.#writeCount.run(key, used + cost, now + resetMs)
      return { used: used + cost, resetMs }
    })
    return { refusedBy: undefined, waitMs: 0, counts: after }
  }

  /** Returns when a window ends: at most one window from now, even if the clock was set back. */
  #count(key: string, now: number, windowMs: number): Count {
    const row = this.#readCount.get(key, now) as { used: number; ends: number } | undefined
    return row
      ? { used: row.used, resetMs: Math.min(row.ends - now, windowMs) }
      : { used: 0, resetMs: windowMs }
  }

  #taken(key: string, now: number, id: string): number {
    return (this.#countSlots.get(key, now, id) as { taken: number }).taken
  }

  /** @throws the error of SQLite; then nothing has changed. */
  #inTransaction<T>(change: () => T): T {
    this.#db.exec('begin immediate')
    try {
      const result = change()
      this.#db.exec('commit')
      return result
    } catch (error) {
      this.#db.exec('rollback')
      throw error
    }
  }

  #ifItAnswers(change: () => unknown): void {
    try {
      change()
    } catch {
      // `admit` reports that the store is away. This operation is repeated, or not needed after its lease ends.
    }
  }
}
