import type { Page, Query } from '../api.ts'
import { type Child, h } from '../element.ts'
import { count, duration, moment, usd } from '../format.ts'
import { type CallFilters, callCount, withGroup } from '../parts/call-count.ts'
import { exportButtons, exported } from '../parts/export.ts'
import { ACCOUNT, filterForm, filtersIn, KEY, LINE, MODEL, TAG, timeFilter, USER } from '../parts/filters.ts'
import { checks, choice, field } from '../parts/form.ts'
import { emptyState } from '../parts/notice.ts'
import { paged } from '../parts/pager.ts'
import { type Column, table } from '../parts/table.ts'
import { groupLink, titleOf } from '../parts/top-usage.ts'
import { endOf, type Grain } from '../periods.ts'
import type { Session } from '../session.ts'
import { hasCost, readUsage, type UsageRow, usagePath } from '../usage.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const ROWS = 50
const ROWS_OF_EXPORT = 1000

/** A page of usage, and the time that it covers. */
interface UsagePage extends Page<UsageRow> {
  readonly from: string
  readonly to: string
}

/** Groups usage by what you choose. The address has the choice, so that you can share a report as a link. */
export function reports(context: ViewContext): ViewContent {
  const { session, api, query, signal } = context
  const path = usagePath(session)
  const groups = groupsIn(query.get('group_by') ?? 'day')
  const filters = [
    ...(session.kind === 'admin' ? [ACCOUNT, LINE] : []),
    KEY,
    MODEL,
    USER,
    TAG,
    timeFilter('from', 'From'),
    timeFilter('to', 'To'),
  ]
  const asked = filtersIn(context, filters)
  let total: Promise<readonly UsageRow[] | undefined> | undefined
  const grouped: Query = { ...asked, group_by: groups.join(',') }
  const load = (cursor: string | undefined, limit: number): Promise<UsagePage> =>
    api.get(path, { ...grouped, limit, cursor }, signal)
  const rows = paged(
    'rows',
    (cursor) => load(cursor, ROWS),
    async (page, { from, to }) => {
      // Of the time that the first page has: by default it ends now.
      total ??= readUsage(context, { ...asked, from, to })
      const [sum] = (await total) ?? []
      if (!sum) return emptyState('No calls in this time.')
      const columns = columnsOf(context, groups, sum, { from, to })
      return [
        h(
          'p',
          { class: 'muted' },
          'From ',
          moment(from),
          ' to before ',
          moment(to),
          '. Days are those of UTC.',
        ),
        table('Usage', columns, page, { ...sum, [groups[0] ?? '']: TOTAL }),
      ]
    },
  )
  return {
    title: 'Reports',
    content: [
      filterForm(context, 'reports', filters, groupFields(session, groups)),
      rows,
      exportButtons('usage', (format, progress) =>
        exported((cursor) => load(cursor, ROWS_OF_EXPORT), format, progress),
      ),
    ],
  }
}

const TOTAL = 'Total'

/** Returns the groups in the address. Those of tags may also stand behind spaces, and have some in their names. */
function groupsIn(text: string): readonly string[] {
  return text.split(/,|\s+(?=tag:)/).flatMap((name) => name.trim() || [])
}

const TIMES = [
  ['', 'none'],
  ['minute', 'minute'],
  ['hour', 'hour'],
  ['day', 'day'],
  ['month', 'month'],
] as const satisfies readonly (readonly [Grain | '', string])[]

function groupFields({ kind }: Session, chosen: readonly string[]): Child {
  const names = [...(kind === 'admin' ? ['account', 'line'] : []), 'key', 'model', 'user']
  const time = chosen.find((name) => TIMES.some(([known]) => known === name)) ?? ''
  const tags = chosen.filter((name) => name.startsWith('tag:')).join(' ')
  return checks(
    'group_by',
    'Group by',
    names,
    chosen,
    choice({ name: 'group_by', label: 'Time' }, TIMES, time),
    field({
      name: 'group_by',
      label: 'Values of tags',
      attributes: { placeholder: 'tag:team', spellcheck: 'false', value: tags },
    }),
  )
}

/** Returns the filters of the calls of a row; those of the total for the row that has it. */
function callsOf(row: UsageRow, groups: readonly string[], all: CallFilters): CallFilters | undefined {
  if (row[groups[0] ?? ''] === TOTAL) return all
  return groups.reduce<CallFilters | undefined>((filters, group) => {
    if (filters === undefined) return undefined
    const value = row[group]
    const grain = TIMES.map(([name]) => name).find((name) => name !== '' && name === group)
    return grain ? withTime(filters, new Date(String(value)), grain) : withGroup(filters, group, value)
  }, all)
}

/** Narrows filters to the bin that begins at a time, as far as they have it. */
function withTime(filters: CallFilters, begin: Date, grain: Grain): CallFilters {
  const { from = '', to = '' } = filters
  const [first, last] = [begin.toISOString(), endOf(begin, grain).toISOString()]
  // Times of one form sort by time.
  const [, later = from] = [first, from].sort()
  const [sooner = to] = [last, to].sort()
  return { ...filters, from: later, to: sooner }
}

function columnsOf(
  context: ViewContext,
  groups: readonly string[],
  total: UsageRow,
  range: Readonly<Record<string, string>>,
): readonly Column<UsageRow>[] {
  const filters: CallFilters = Object.fromEntries(
    ['account', 'line', 'key', 'model', 'user', 'tag'].map((name) => [name, context.query.get(name) ?? '']),
  )
  const calls = (row: UsageRow) => callsOf(row, groups, { ...filters, ...range })
  const figure = (name: string, cell: (row: UsageRow) => Child): Column<UsageRow> => ({
    name,
    figures: true,
    cell,
  })
  return [
    ...groups.map(
      (group, i): Column<UsageRow> => ({
        name: titleOf(group),
        heads: i === 0,
        cell(row) {
          if (row[groups[0] ?? ''] === TOTAL) return i === 0 ? TOTAL : null
          const isTime = group === 'minute' || group === 'hour'
          return isTime ? moment(String(row[group])) : groupLink(context, group, row[group], range)
        },
      }),
    ),
    figure('Requests', (row) => callCount(row.requests, 'requests', calls(row))),
    figure('Refused', (row) => callCount(row.refused, 'refused', calls(row))),
    figure('Failed', (row) => callCount(row.failed, 'failed', calls(row))),
    figure('Input', ({ input_tokens }) => count(input_tokens)),
    figure('Cached', ({ cached_input_tokens }) => count(cached_input_tokens)),
    figure('Output', ({ output_tokens }) => count(output_tokens)),
    ...(total.images > 0 ? [figure('Images', ({ images }) => count(images))] : []),
    ...(total.seconds > 0 ? [figure('Seconds', ({ seconds }) => count(seconds))] : []),
    figure('Charged', ({ charged }) => usd(charged)),
    ...(hasCost(total) ? [figure('Cost', ({ cost }) => usd(cost))] : []),
    figure('p50', ({ p50_ms }) => duration(p50_ms)),
    figure('p95', ({ p95_ms }) => duration(p95_ms)),
  ]
}
