import { type Child, h } from '../element.ts'
import { NOTHING } from '../format.ts'

/** A column: its heading, and the content of its cells. */
export interface Column<T> {
  readonly name: string
  /** Whether the column has numbers, which are aligned to the right. */
  readonly figures?: boolean
  /** Whether the column needs more width, such as for names with hyphens. */
  readonly names?: boolean
  /** Whether the column is the heading of the row, which screen readers read with each cell. */
  readonly heads?: boolean
  cell(row: T): Child
}

/**
 * A table, with the total of its rows at the end if there is one. Where the page is narrow each row becomes a block of names and values; the roles keep it a table for screen
 * readers there too.
 */
export function table<T>(
  label: string,
  columns: readonly Column<T>[],
  rows: readonly T[],
  total?: T,
): HTMLTableElement {
  return h(
    'table',
    { role: 'table', 'aria-label': label },
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map(headingOf))),
    h(
      'tbody',
      { role: 'rowgroup' },
      rows.map((row) => tableRow(columns, row)),
    ),
    total && h('tfoot', { role: 'rowgroup' }, tableRow(columns, total)),
  )
}

/** Creates a row for an existing table. */
export function tableRow<T>(columns: readonly Column<T>[], row: T): HTMLTableRowElement {
  return h(
    'tr',
    { role: 'row' },
    columns.map((column) => cellOf(column, row)),
  )
}

function headingOf<T>(column: Column<T>): HTMLElement {
  return h('th', { role: 'columnheader', scope: 'col', class: classOf(column) }, column.name)
}

function cellOf<T>(column: Column<T>, row: T): HTMLElement {
  const value = column.cell(row)
  const blank = value === null || value === undefined || value === '' || value === NOTHING
  const attributes = {
    'data-name': column.name,
    class: `${classOf(column)}${blank ? ' blank' : ''}`.trim() || null,
  }
  const shown = blank ? NOTHING : value
  return column.heads
    ? h('th', { role: 'rowheader', scope: 'row', ...attributes }, shown)
    : h('td', { role: 'cell', ...attributes }, shown)
}

function classOf<T>({ figures, names }: Column<T>): string {
  if (figures) return 'figures'
  return names ? 'names' : ''
}
