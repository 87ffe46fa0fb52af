import type { DatabaseSync } from 'node:sqlite'
import type { SettlementResult } from '../../../ledger/index.ts'
import { type SettlementCell, SettlementCells, type SettlementRow } from './settlement-cells.ts'
import { SqliteCharges } from './sqlite-charges.ts'
import { SqliteMoney } from './sqlite-money.ts'
import { SqliteRecords } from './sqlite-records.ts'

/**
 * Settles calls within the database's own thread, many in one transaction: what `Settling` does on Postgres with a
 * statement for many calls at a time, as there each is a journey, this does call by call, as here each is next to
 * nothing. Both keep the one contract of a `Ledger`.
 */
export class SqliteSettling {
  readonly #charges: SqliteCharges
  readonly #records: SqliteRecords
  readonly #money: SqliteMoney

  constructor(db: DatabaseSync) {
    this.#charges = new SqliteCharges(db)
    this.#records = new SqliteRecords(db)
    this.#money = new SqliteMoney(db)
  }

  /**
   * To be called within a transaction, which is to be undone where this throws.
   *
   * @throws RangeError when a figure has grown beyond what the database holds.
   */
  settle(cells: readonly SettlementCell[]): SettlementResult[] {
    const settlements = new SettlementCells(cells)
    const results: SettlementResult[] = []
    this.#money.begin()
    for (let next = settlements.next(); next; next = settlements.next()) {
      results.push(next.kind === 'charge' ? this.#charge(next) : this.#void(next))
    }
    this.#money.save()
    return results
  }

  #charge(charge: SettlementRow): SettlementResult {
    const { requestId, claim, entry } = charge
    const lost = claim !== null && !this.#records.complete(claim)
    if (!lost && this.#charges.insert(charge)) {
      this.#money.spend(charge, charge.amount)
      this.#money.draw(charge.draws)
      if (entry) this.#records.log(entry)
      return 'written'
    }
    const charged = this.#charges.find(requestId) !== undefined
    if (lost && !charged) return 'fenced'
    // What a void has undone stays so: its entry, and its claim, which was still there to be completed.
    if (!this.#charges.isVoided(requestId)) {
      if (entry) this.#records.log(entry)
    } else if (claim) this.#records.free(claim)
    return 'known'
  }

  #void(undoing: SettlementRow): SettlementResult {
    const charged = this.#charges.find(undoing.requestId)
    const written = this.#charges.void(undoing, charged)
    if (written && charged) this.#money.spend(charged, -charged.amount)
    if (undoing.entry) this.#records.log(undoing.entry)
    if (undoing.claim) this.#records.free(undoing.claim)
    return written ? 'written' : 'known'
  }
}
