import type { Page, Query } from '../api.ts'
import { h } from '../element.ts'
import type { ViewContext } from '../view.ts'
import { exportButtons, exported } from './export.ts'
import { emptyState } from './notice.ts'
import { paged } from './pager.ts'
import { type Column, table } from './table.ts'

const ROWS = 50
const ROWS_OF_EXPORT = 100
/** So many pages without rows are passed over at once. */
const EMPTY_PAGES = 20

/** How a table shows the rows of a list. */
export interface Rows<T> {
  /** The word for the rows, such as `accounts`; it names the exported file too. */
  readonly what: string
  readonly columns: readonly Column<T>[]
  /** Shown if there is no row, and no filter. Defaults to "No … yet." */
  readonly empty?: string
}

/** A list of the API as a table. */
export interface Listing<T> extends Rows<T> {
  readonly path: string
  /** The filters. */
  readonly query?: Query
  /** The subject of the view itself, such as an account. It does not count as a filter. */
  readonly of?: Query
}

/** Shows a list of the API page by page, with buttons that export all of it. */
export function listing<T extends object>({ api, signal }: ViewContext, list: Listing<T>): HTMLElement {
  const { path, query = {}, of = {} } = list
  const isFiltered = Object.values(query).some((value) => value !== undefined && value !== '')
  return pages(list, isFiltered, (cursor, limit) =>
    api.get<Page<T>>(path, { ...of, ...query, cursor, limit }, signal),
  )
}

/** Shows rows that have all been read in the same way. */
export function rowListing<T extends object>(
  rows: readonly T[],
  isFiltered: boolean,
  shown: Rows<T>,
): HTMLElement {
  return pages(shown, isFiltered, async (cursor, limit) => {
    const end = Number(cursor ?? 0) + limit
    return { data: rows.slice(end - limit, end), next_cursor: end < rows.length ? String(end) : null }
  })
}

/** Returns the first page that has rows: a search among very many may end a page before it finds any. */
async function firstWithRows<T>(
  load: (cursor: string | undefined) => Promise<Page<T>>,
  cursor: string | undefined,
): Promise<Page<T>> {
  let page = await load(cursor)
  for (let more = 0; more < EMPTY_PAGES && page.data.length === 0 && page.next_cursor !== null; more++)
    page = await load(page.next_cursor)
  return page
}

function pages<T extends object>(
  { what, columns, empty = `No ${what} yet.` }: Rows<T>,
  isFiltered: boolean,
  load: (cursor: string | undefined, limit: number) => Promise<Page<T>>,
): HTMLElement {
  const label = `${what[0]?.toUpperCase()}${what.slice(1)}`
  const exports = exportButtons(what.replaceAll(' ', '-'), (format, progress) =>
    exported((cursor) => load(cursor, ROWS_OF_EXPORT), format, progress),
  )
  const rows = paged<T>(
    what,
    (cursor) => firstWithRows((after) => load(after, ROWS), cursor),
    (data, { next_cursor: next }) => {
      exports.hidden = data.length === 0
      if (data.length > 0) return table(label, columns, data)
      if (next !== null) return emptyState(`No ${what} match so far. The next page looks further.`)
      return emptyState(isFiltered ? `No ${what} match.` : empty)
    },
  )
  return h('div', { class: 'stack' }, rows, exports)
}
