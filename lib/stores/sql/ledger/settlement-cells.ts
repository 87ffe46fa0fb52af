import type { Draw, Settlement } from '../../../ledger/index.ts'
import { callRowOf } from '../calls/call-row.ts'
import type { CallsTable } from '../driver/tables.ts'

/** What one settlement after the other is written in; another thread is handed it as quickly as one text. */
export type SettlementCell = string | number | bigint | null

/** Words settlements as cells, which {@link SettlementCells} reads. */
export function cellsOf(settlements: readonly Settlement[]): SettlementCell[] {
  const cells: SettlementCell[] = []
  for (const { kind, requestId, account, key, amount, at, basis, draws, claim, entry } of settlements) {
    cells.push(kind, requestId, account, key, amount, at, basis, draws.length)
    for (const { lease, wallet, amount } of draws) cells.push(lease, wallet, amount)
    if (claim) cells.push(claim.id, claim.owner, claim.keepUntil)
    else cells.push(null)
    if (entry) pushEntry(cells, callRowOf(entry))
    else cells.push(null)
  }
  return cells
}

function pushEntry(cells: SettlementCell[], row: CallsTable): void {
  const { id, account, key, model, status, error_code, created_at, entry, response_body } = row
  cells.push(id, account, key, model, status, error_code, created_at, entry, response_body)
}

/** A settlement as its cells tell it. */
export type SettlementRow = Omit<Settlement, 'entry'> & { readonly entry: CallsTable | null }

/** Reads settlements out of their cells, one by one. */
export class SettlementCells {
  readonly #cells: readonly SettlementCell[]
  #at = 0

  constructor(cells: readonly SettlementCell[]) {
    this.#cells = cells
  }

  /** The next one; undefined behind the last. */
  next(): SettlementRow | undefined {
    if (this.#at >= this.#cells.length) return undefined
    return {
      kind: this.#cell(),
      requestId: this.#cell(),
      account: this.#cell(),
      key: this.#cell(),
      amount: this.#cell(),
      at: this.#cell(),
      basis: this.#cell(),
      draws: this.#draws(),
      claim: this.#claim(),
      entry: this.#entry(),
    }
  }

  #draws(): Draw[] {
    const draws: Draw[] = []
    for (let left = this.#cell<number>(); left > 0; left--) {
      draws.push({ lease: this.#cell(), wallet: this.#cell(), amount: this.#cell() })
    }
    return draws
  }

  #claim(): SettlementRow['claim'] {
    const id = this.#cell<string | null>()
    return id === null ? null : { id, owner: this.#cell(), keepUntil: this.#cell() }
  }

  #entry(): CallsTable | null {
    const id = this.#cell<string | null>()
    if (id === null) return null
    return {
      id,
      account: this.#cell(),
      key: this.#cell(),
      model: this.#cell(),
      status: this.#cell(),
      error_code: this.#cell(),
      created_at: this.#cell(),
      entry: this.#cell(),
      response_body: this.#cell(),
    }
  }

  /** The next cell, which is of the type that stands at its place. */
  #cell<T extends SettlementCell>(): T {
    return this.#cells[this.#at++] as T
  }
}
