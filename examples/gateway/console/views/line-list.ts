import type { Page } from '../api.ts'
import { type Child, fill, h } from '../element.ts'
import type { Line } from '../lines.ts'
import { printReadyMessage } from '../parts/announcer.ts'
import { LINE_FIGURES } from '../parts/line-columns.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState, faultNotice } from '../parts/notice.ts'
import { type Column, table } from '../parts/table.ts'
import { isLeaving, type ViewContent, type ViewContext } from '../view.ts'

const PAGE = 100
const AGAIN_MS = 5000

/** Lists the lines with their status and switches. */
export function lineList(context: ViewContext): ViewContent {
  const result = h('div', {})

  const switchLine = async ({ id, enabled }: Line): Promise<void> => {
    fill(result)
    try {
      await context.api.send<Line>('PATCH', `admin/lines/${encodeURIComponent(id)}`, { enabled: !enabled })
      printReadyMessage(`${id} is switched ${enabled ? 'off' : 'on'}.`)
      fill(lines, show(await allLines(context)))
      lines.querySelector<HTMLElement>(`[data-line="${CSS.escape(id)}"]`)?.focus()
    } catch (error) {
      if (!isLeaving(error)) fill(result, faultNotice(error))
    }
  }
  const column: Column<Line> = {
    name: 'Switch',
    cell: (line) =>
      h(
        'button',
        {
          type: 'button',
          'data-line': line.id,
          'aria-label': `Switch ${line.id} ${line.enabled ? 'off' : 'on'}`,
          click: () => void switchLine(line),
        },
        `Switch ${line.enabled ? 'off' : 'on'}`,
      ),
  }
  const show = (rows: readonly Line[]): Child =>
    rows.length === 0
      ? emptyState('The config has no lines.')
      : table('Lines', [...LINE_FIGURES, column], rows)

  const lines = loaded('lines', async () => show(await allLines(context)))
  keepFresh(context, async () => {
    const rows = await allLines(context)
    // Do not replace rows while the user works with them.
    if (!lines.contains(document.activeElement)) fill(lines, show(rows))
  })
  return {
    title: 'Lines',
    content: [
      h(
        'p',
        { class: 'muted' },
        'Figures are of about the last minute, of all workers of the machine that answers. A switch reaches every process within 5 s.',
      ),
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
