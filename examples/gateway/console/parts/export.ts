import { ApiFault, type Page } from '../api.ts'
import { type Child, fill, h } from '../element.ts'
import { count } from '../format.ts'
import { announce } from './announcer.ts'
import { faultNotice, notice } from './notice.ts'

export type Format = 'csv' | 'json'

const TYPES: Readonly<Record<Format, string>> = { csv: 'text/csv', json: 'application/json' }
/** Bounds what an export holds in memory. */
const MAX_ROWS = 50_000

/** Creates the buttons of an export. `text` returns what the file holds, or null if there is none. */
export function exportButtons(
  name: string,
  text: (format: Format, progress: (rows: number) => void) => Promise<string | null>,
): HTMLElement {
  const result = h('div', { class: 'result' })
  const run = async (format: Format): Promise<void> => {
    fill(result)
    try {
      const content = await text(format, (rows) =>
        fill(result, h('p', { class: 'muted' }, `${count(rows)} rows …`)),
      )
      fill(result, content === null && tooMany())
      if (content !== null) save(`${name}.${format}`, content, TYPES[format])
    } catch (error) {
      fill(result, faultNotice(error))
    }
  }
  const button = (format: Format): Child =>
    h(
      'button',
      { type: 'button', class: 'quiet', click: () => void run(format) },
      `Export ${format.toUpperCase()}`,
    )
  return h('div', { class: 'export' }, h('div', { class: 'buttons' }, button('csv'), button('json')), result)
}

function tooMany(): HTMLElement {
  return notice('bad', h('p', {}, `There are more than ${count(MAX_ROWS)} rows. Narrow the filters.`))
}

/** Reads all pages of a list as one text; null if it has too many rows. */
export async function exported<T extends object>(
  load: (cursor: string | undefined) => Promise<Page<T>>,
  format: Format,
  progress: (rows: number) => void,
): Promise<string | null> {
  const rows: T[] = []
  let cursor: string | undefined
  do {
    const page = await retryRateLimited(() => load(cursor))
    rows.push(...page.data)
    progress(rows.length)
    if (rows.length > MAX_ROWS) return null
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return format === 'json' ? JSON.stringify(rows, null, 1) : csvOf(rows)
}

/** Sends a request again when the limit of look-ups lets it through. */
async function retryRateLimited<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ApiFault) || error.status !== 429 || error.retryAfterMs === null) throw error
      const { retryAfterMs } = error
      await new Promise((resolve) => setTimeout(resolve, retryAfterMs))
    }
  }
}

type Cell = readonly [name: string, text: string]

/** Returns rows as CSV. Members of members have names such as `usage.input_tokens`. */
function csvOf(rows: readonly object[]): string {
  const cells = rows.map((row) =>
    Object.entries(row).map(([member, value]) => ({ member, own: cellsOf(member, value) })),
  )
  const names = columnsIn(cells.flat())
  const texts = cells.map((row) => new Map(row.flatMap(({ own }) => own)))
  const lines = [names, ...texts.map((row) => names.map((name) => row.get(name) ?? ''))]
  return lines.map((line) => `${line.map(quoted).join(',')}\r\n`).join('')
}

/** Returns the names of all cells. Those of a member stand together, and not beside its own name: it is null at times. */
function columnsIn(cells: readonly { member: string; own: readonly Cell[] }[]): readonly string[] {
  const byMember = new Map<string, Set<string>>()
  for (const { member, own } of cells) {
    const names = byMember.get(member) ?? new Set()
    byMember.set(member, names)
    for (const [name] of own) names.add(name)
  }
  return [...byMember].flatMap(([member, names]) =>
    names.size > 1 ? [...names].filter((name) => name !== member) : [...names],
  )
}

function cellsOf(name: string, value: unknown): Cell[] {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return Object.entries(value).flatMap(([member, inner]) => cellsOf(`${name}.${member}`, inner))
  return [[name, typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)]]
}

/** Quotes a cell. One that a spreadsheet would run as a formula is marked as text. */
function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function save(name: string, content: string, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }))
  h('a', { href: url, download: name }).click()
  // The browser has taken the content by then.
  setTimeout(() => URL.revokeObjectURL(url), 1000)
  announce(`${name} is saved.`)
}
