import type { Query } from '../api.ts'
import { type Child, h } from '../element.ts'
import { aboutUsd, compact, count, duration, money } from '../format.ts'
import { binsOf, binText, type Period } from '../periods.ts'
import { linkWith } from '../router.ts'
import { hasCost, NO_USAGE, readUsage, type UsageRow } from '../usage.ts'
import type { ViewContext } from '../view.ts'
import { callCount } from './call-count.ts'
import { chart } from './chart.ts'
import { tiles } from './facts.ts'
import { loaded } from './loaded.ts'
import { emptyState } from './notice.ts'
import { periodChoice } from './period-choice.ts'
import { topUsage } from './top-usage.ts'

/**
 * Shows usage over a period to choose: sums, charts, and who and what had most of it.
 *
 * @param filters such as the account whose usage it is.
 * @param groups what the lists of the most are of.
 */
export function usagePanel(
  context: ViewContext,
  filters: Readonly<Record<string, string>>,
  groups: readonly string[],
): HTMLElement {
  return periodChoice(context.query, (period) => [
    loaded('usage', async () => overTime(context, filters, period)),
    h(
      'div',
      { class: 'columns' },
      groups.map((group) => topUsage(context, group, within(filters, period))),
    ),
  ])
}

function within(filters: Readonly<Record<string, string>>, { from, to }: Period): Record<string, string> {
  return { ...filters, from: from.toISOString(), to: to.toISOString() }
}

async function overTime(context: ViewContext, filters: Query, period: Period): Promise<Child> {
  const query = within(filters as Record<string, string>, period)
  const [[sum] = [], rows = []] = await Promise.all([
    readUsage(context, query),
    readUsage(context, { ...query, group_by: period.grain }),
  ])
  if (!sum) return emptyState('No calls in this time.')
  const operator = context.session.kind === 'admin'
  const report = linkWith('reports', { ...query, group_by: period.grain })
  return [sums(sum, operator, query, report), charts(rows, period, operator, hasCost(sum))]
}

function sums(
  sum: UsageRow,
  operator: boolean,
  query: Readonly<Record<string, string>>,
  report: string,
): HTMLElement {
  const reported = (figure: Child) => h('a', { href: report }, figure)
  // There may be charges without requests: those of calls that were made before, such as videos.
  const all = Math.max(1, sum.requests)
  const share = (part: number): string => `${Math.round((part / all) * 1000) / 10} % of all`
  return tiles([
    ['Requests', callCount(sum.requests, 'requests', query)],
    ['Failed', callCount(sum.failed, 'failed', query), share(sum.failed)],
    ['Refused', callCount(sum.refused, 'refused', query), share(sum.refused)],
    [operator ? 'Charged' : 'Spent', reported(aboutUsd(sum.charged))],
    ...(hasCost(sum) ? ([['Cost', reported(aboutUsd(sum.cost))]] as const) : []),
    ['Time to answer', duration(sum.p50_ms), `p50; p95: ${duration(sum.p95_ms)}`],
    [
      'Tokens',
      reported(count(sum.input_tokens + sum.output_tokens)),
      `${count(sum.input_tokens)} in, ${count(sum.output_tokens)} out`,
    ],
  ])
}

function charts(
  rows: readonly UsageRow[],
  period: Period,
  operator: boolean,
  withCost: boolean,
): HTMLElement {
  const times = binsOf(period)
  const byTime = new Map(rows.map((row) => [Date.parse(String(row[period.grain])), row]))
  const bins = times.map((time) => byTime.get(time.getTime()) ?? NO_USAGE)
  const time = (at: Date, short: boolean): string => binText(at, period, short)
  const shared = { times, time }
  const counted = { ...shared, form: 'bars', text: (value: number) => count(value) } as const
  return h(
    'div',
    { class: 'columns' },
    chart({
      ...counted,
      title: 'Requests over time',
      series: [
        {
          name: 'answered',
          colour: 'accent',
          values: bins.map(({ requests, refused, failed }) => requests - refused - failed),
        },
        { name: 'refused', colour: 'warn', values: bins.map(({ refused }) => refused) },
        { name: 'failed', colour: 'bad', values: bins.map(({ failed }) => failed) },
      ],
    }),
    chart({
      ...shared,
      form: withCost ? 'lines' : 'bars',
      title: withCost ? 'Charged and cost over time' : operator ? 'Charged over time' : 'Spend over time',
      text: money,
      series: [
        {
          name: operator ? 'charged' : 'spent',
          colour: 'accent',
          values: bins.map(({ charged }) => Number(charged)),
        },
        ...(withCost
          ? ([{ name: 'cost', colour: 'warn', values: bins.map(({ cost = '0' }) => Number(cost)) }] as const)
          : []),
      ],
    }),
    chart({
      ...shared,
      form: 'lines',
      title: 'Time to answer',
      text: (value) => duration(value),
      series: [
        { name: 'p50', colour: 'accent', values: bins.map(({ p50_ms }) => p50_ms) },
        { name: 'p95', colour: 'warn', values: bins.map(({ p95_ms }) => p95_ms) },
      ],
    }),
    chart({
      ...counted,
      title: 'Tokens over time',
      text: (value, short) => (short ? compact(value) : count(value)),
      series: [
        { name: 'input', colour: 'muted', values: bins.map(({ input_tokens }) => input_tokens) },
        { name: 'output', colour: 'accent', values: bins.map(({ output_tokens }) => output_tokens) },
      ],
    }),
  )
}
