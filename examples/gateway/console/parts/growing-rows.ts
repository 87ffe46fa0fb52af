import { type Column, table, tableRow } from './table.ts'

/** More than a person reads; the oldest give way. */
const MOST_ROWS = 200

/**
 * A table into which rows come as time goes on, the greatest id first. A call is logged when it ends and has the id of
 * its beginning: a long one belongs below short ones that are there already. Rows that are there stay the elements that
 * they are, as the focus may be on one.
 */
export class GrowingRows<T extends { readonly id: string }> {
  readonly element: HTMLTableElement
  readonly #columns: readonly Column<T>[]
  readonly #rows = new Map<string, HTMLTableRowElement>()

  constructor(label: string, columns: readonly Column<T>[]) {
    this.#columns = columns
    this.element = table(label, columns, [])
  }

  /** Puts those in that are not there yet; answers how many. */
  add(found: readonly T[]): number {
    const fresh = found.filter(({ id }) => !this.#rows.has(id))
    for (const row of fresh) this.#rows.set(row.id, tableRow(this.#columns, row))
    if (fresh.length > 0) this.#arrange()
    return fresh.length
  }

  #arrange(): void {
    const ids = [...this.#rows.keys()].sort().reverse()
    for (const id of ids.splice(MOST_ROWS)) this.#remove(id)
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
