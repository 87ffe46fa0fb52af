import { type Column, table, tableRow } from './table.ts'

/** The most rows to show; the oldest are removed. */
const MAX_ROWS = 200

/**
 * A table to which rows are added over time, greatest id first. A call is logged at its end with an id of its beginning, so
 * that a long call goes below short ones. Existing rows stay the same elements, because one of them can have the focus.
 */
export class LiveRows<T extends { readonly id: string }> {
  readonly element: HTMLTableElement
  readonly #columns: readonly Column<T>[]
  readonly #rows = new Map<string, HTMLTableRowElement>()

  constructor(label: string, columns: readonly Column<T>[]) {
    this.#columns = columns
    this.element = table(label, columns, [])
  }

  /** Adds the rows that are missing, and returns how many it added. */
  add(found: readonly T[]): number {
    const fresh = found.filter(({ id }) => !this.#rows.has(id))
    for (const row of fresh) this.#rows.set(row.id, tableRow(this.#columns, row))
    if (fresh.length > 0) this.#arrange()
    return fresh.length
  }

  #arrange(): void {
    const ids = [...this.#rows.keys()].sort().reverse()
    for (const id of ids.splice(MAX_ROWS)) this.#remove(id)
    let above: Element | null = null
    for (const id of ids) {
      const row = this.#rows.get(id)
      if (!row) continue
      const place: Element | null = above
        ? above.nextElementSibling
        : (this.element.tBodies[0]?.firstElementChild ?? null)
      if (place !== row) this.element.tBodies[0]?.insertBefore(row, place)
      above = row
    }
  }

  #remove(id: string): void {
    this.#rows.get(id)?.remove()
    this.#rows.delete(id)
  }
}
