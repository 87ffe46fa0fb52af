import type { Page } from '../api.ts'
import { type Child, fill, h } from '../element.ts'
import type { Line } from '../lines.ts'
import { resultPlace } from '../parts/action-button.ts'
import { announce } from '../parts/announcer.ts'
import { filterForm, LINE } from '../parts/filters.ts'
import { lineColumns } from '../parts/line-columns.ts'
import { rowListing } from '../parts/listing.ts'
import { loaded } from '../parts/loaded.ts'
import { faultNotice } from '../parts/notice.ts'
import type { Column } from '../parts/table.ts'
import { may } from '../session.ts'
import { isLeaving, type ViewContent, type ViewContext } from '../view.ts'

const PAGE = 100
const AGAIN_MS = 5000

/** Lists the lines with their status and switches. */
export function lineList(context: ViewContext): ViewContent {
  const result = resultPlace()
  const wanted = context.query.get('line') ?? ''

  const switchLine = async ({ id, enabled }: Line): Promise<void> => {
    fill(result)
    try {
      await context.api.send<Line>('PATCH', `admin/lines/${encodeURIComponent(id)}`, { enabled: !enabled })
      announce(`${id} is switched ${enabled ? 'off' : 'on'}.`)
      fill(lines, await show())
      // The rows are in the page a moment later.
      setTimeout(() => lines.querySelector<HTMLElement>(`[data-line="${CSS.escape(id)}"]`)?.focus())
    } catch (error) {
      if (!isLeaving(error)) fill(result, faultNotice(error))
    }
  }
  const button: Column<Line> = {
    name: 'Switch',
    cell: (line) =>
      h(
        'button',
        {
          type: 'button',
          'data-line': line.id,
          'aria-label': `Switch ${line.enabled ? 'off' : 'on'} ${line.id}`,
          click: () => void switchLine(line),
        },
        `Switch ${line.enabled ? 'off' : 'on'}`,
      ),
  }
  const columns = [...lineColumns(context.session), ...(may(context.session, 'admin') ? [button] : [])]
  const show = async (): Promise<Child> => {
    const rows = (await allLines(context)).filter(({ id }) => id.includes(wanted))
    return rowListing(rows, wanted !== '', { what: 'lines', columns, empty: 'The config has no lines.' })
  }
  const lines = loaded('lines', show)
  keepFresh(context, async () => {
    const fresh = await show()
    // Do not replace rows while the user works with them.
    if (!lines.contains(document.activeElement)) fill(lines, fresh)
  })
  return {
    title: 'Lines',
    content: [
      h(
        'p',
        { class: 'muted' },
        'Figures are of about the last minute, of all workers of the machine that answers. A switch reaches every process within 5 s.',
      ),
      filterForm(context, 'lines', [LINE]),
      result,
      lines,
    ],
  }
}

async function allLines({ api, signal }: ViewContext): Promise<readonly Line[]> {
  const lines: Line[] = []
  let cursor: string | undefined
  do {
    const page: Page<Line> = await api.get('admin/lines', { limit: PAGE, cursor }, signal)
    lines.push(...page.data)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return lines
}

/** Runs something every few seconds while the view is visible. Its errors are ignored. */
function keepFresh({ signal }: ViewContext, refresh: () => Promise<void>): void {
  const timer = setInterval(() => {
    if (!document.hidden) refresh().catch(() => {})
  }, AGAIN_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
}
