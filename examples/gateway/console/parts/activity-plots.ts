import { type Activity, MAX_CALLS, PERIODS, readActivity } from '../call-activity.ts'
import { type Child, fill, h } from '../element.ts'
import { amountOf, count, usd } from '../format.ts'
import { linkWith } from '../router.ts'
import type { ViewContext } from '../view.ts'
import { loaded } from './loaded.ts'
import { emptyState, notice } from './notice.ts'
import { plot } from './plot.ts'
import { table } from './table.ts'

const FIRST = '24h'

/** Shows the activity of an account over time: requests, spend, errors. The page sums up the calls of the log. */
export function activityPlots(context: ViewContext, account: string | undefined): HTMLElement {
  const place = h('div', { class: 'stack' })
  const buttons = PERIODS.map((period) =>
    h('button', { type: 'button', 'aria-pressed': 'false', click: () => choose(period.name) }, period.text),
  )
  const choose = (name: string): void => {
    for (const [i, period] of PERIODS.entries()) {
      const chosen = period.name === name
      buttons[i]?.setAttribute('aria-pressed', String(chosen))
      if (!chosen) continue
      fill(
        place,
        loaded('calls', async () =>
          shown(context, await readActivity(context, account, period, Date.now()), period.binMs),
        ),
      )
    }
  }
  choose(FIRST)
  return h(
    'div',
    { class: 'stack' },
    h('div', { class: 'choices', role: 'group', 'aria-label': 'Period' }, buttons),
    place,
  )
}

function shown(context: ViewContext, activity: Activity, binMs: number): Child {
  const { bins, calls, spent, truncated } = activity
  if (calls === 0) return emptyState('No calls in this time.')
  const times = bins.map(({ from }) => from)
  return [
    truncated &&
      notice(
        'info',
        h('p', {}, `Only the newest ${count(MAX_CALLS)} calls of this time are in these figures.`),
      ),
    h('p', { class: 'muted' }, `${count(calls)} requests, ${usd(amountOf(spent))} spent.`),
    h(
      'div',
      { class: 'columns' },
      plot({
        title: 'Requests over time',
        unit: 'requests',
        times,
        binMs,
        text: count,
        series: [
          { name: 'completed', colour: 'accent', values: bins.map(({ completed }) => completed) },
          { name: 'with an error', colour: 'bad', values: bins.map(({ failed }) => failed) },
        ],
      }),
      plot({
        title: 'Spend over time',
        unit: 'US dollars',
        times,
        binMs,
        text: dollars,
        series: [{ name: 'spent', colour: 'accent', values: bins.map((bin) => Number(bin.spent) / 1e9) }],
      }),
    ),
    h('h3', {}, 'Errors by code'),
    errors(context, activity),
  ]
}

/** Formats a number with at most nine decimal places, never as 1e-7. */
function dollars(value: number): string {
  return usd(value.toFixed(9).replace(/0+$/, ''))
}

function errors({ session, params }: ViewContext, { errors: found, calls }: Activity): Child {
  if (found.length === 0) return emptyState('None.')
  const account = session.kind === 'admin' ? (params.id ?? '') : ''
  return table(
    'Errors by code',
    [
      {
        name: 'Code',
        heads: true,
        cell: ([code]) => h('a', { href: linkWith('calls', { account, code }), class: 'mono' }, code),
      },
      { name: 'Calls', figures: true, cell: ([, times]) => count(times) },
      { name: 'Of all', figures: true, cell: ([, times]) => `${Math.round((times / calls) * 1000) / 10} %` },
    ],
    found,
  )
}
