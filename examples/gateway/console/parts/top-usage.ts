import { type Child, h } from '../element.ts'
import { aboutUsd, duration, nanosOf } from '../format.ts'
import { linkWith } from '../router.ts'
import { readUsage, type UsageRow } from '../usage.ts'
import type { ViewContext } from '../view.ts'
import { type CallFilters, callCount, withGroup } from './call-count.ts'
import { section } from './facts.ts'
import { recordLink } from './links.ts'
import { loaded } from './loaded.ts'
import { emptyState } from './notice.ts'
import { table } from './table.ts'

const SHOWN = 8

/** Shows the members of a group that were charged most, with links to them and to the report of all. */
export function topUsage(
  context: ViewContext,
  group: string,
  query: Readonly<Record<string, string>>,
): HTMLElement {
  const all = h('a', { href: linkWith('reports', { ...query, group_by: group }) }, `All by ${group}`)
  const list = loaded('usage', async () => {
    const rows = await readUsage(context, { ...query, group_by: group })
    if (!rows) return emptyState('There are too many to rank here: see the report.')
    if (rows.length === 0) return emptyState('None.')
    return [top(context, group, rows, query), h('p', { class: 'small' }, all)]
  })
  return section(`By ${group}`, list)
}

function top(
  context: ViewContext,
  group: string,
  rows: readonly UsageRow[],
  query: CallFilters,
): HTMLElement {
  const range = { from: query.from ?? '', to: query.to ?? '' }
  const calls = (row: UsageRow) => withGroup(query, group, row[group])
  const ranked = [...rows].sort(byCharge).slice(0, SHOWN)
  return table(
    `By ${group}`,
    [
      {
        name: titleOf(group),
        heads: true,
        names: true,
        cell: (row: UsageRow) => groupLink(context, group, row[group], range),
      },
      { name: 'Requests', figures: true, cell: (row) => callCount(row.requests, 'requests', calls(row)) },
      { name: 'Failed', figures: true, cell: (row) => callCount(row.failed, 'failed', calls(row)) },
      { name: 'Charged', figures: true, cell: ({ charged }) => aboutUsd(charged) },
      { name: 'p95', figures: true, cell: ({ p95_ms }) => duration(p95_ms) },
    ],
    ranked,
  )
}

function byCharge(one: UsageRow, other: UsageRow): number {
  const difference = nanosOf(other.charged) - nanosOf(one.charged)
  return difference === 0n ? other.requests - one.requests : difference > 0n ? 1 : -1
}

/** Returns the heading of a group: `tag:team` has that of its tag. */
export function titleOf(group: string): string {
  const name = group.replace('tag:', '')
  return `${name[0]?.toUpperCase() ?? ''}${name.slice(1)}`
}

/** Links a member of a group to its page, or to its calls if it has none. */
export function groupLink(
  { session }: ViewContext,
  group: string,
  value: unknown,
  range: Readonly<Record<string, string>>,
): Child {
  if (value === null || value === undefined || value === '') return h('span', { class: 'muted' }, 'none')
  const text = String(value)
  if (!group.startsWith('tag:')) return recordLink(session, group, text, range)
  return h('a', { href: linkWith('calls', withGroup(range, group, text) ?? {}) }, text)
}
