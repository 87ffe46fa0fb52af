import type { Lease } from '../accounts.ts'
import type { Page } from '../api.ts'
import { h } from '../element.ts'
import { moment, usd } from '../format.ts'
import type { ViewContext } from '../view.ts'
import { loaded } from './loaded.ts'
import { emptyState } from './notice.ts'
import { type Column, table } from './table.ts'

const PAGE = 100
const MAX_PAGES = 20

/** Shows the open leases of all processes, for one account or for all. */
export function leaseTable(context: ViewContext, account?: string): HTMLElement {
  return loaded('leases', async () => {
    const leases = await readLeases(context)
    const shown =
      account === undefined ? leases : leases.filter(({ wallet }) => wallet === `account:${account}`)
    return shown.length === 0
      ? emptyState('No process has set anything aside.')
      : table('Leases', COLUMNS, shown)
  })
}

async function readLeases({ api, signal }: ViewContext): Promise<readonly Lease[]> {
  const leases: Lease[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const { data, next_cursor: next }: Page<Lease> = await api.get(
      'admin/leases',
      { limit: PAGE, cursor },
      signal,
    )
    leases.push(...data)
    if (next === null) break
    cursor = next
  }
  return leases
}

const COLUMNS: readonly Column<Lease>[] = [
  { name: 'Of', heads: true, cell: ({ wallet }) => wallet },
  { name: 'Held', figures: true, cell: ({ held }) => usd(held) },
  { name: 'Process', cell: ({ owner }) => h('span', { class: 'mono small' }, owner) },
  { name: 'Renewed', cell: ({ renewed_at }) => moment(renewed_at) },
]
