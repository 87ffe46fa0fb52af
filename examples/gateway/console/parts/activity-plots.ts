import { type Activity, MOST_CALLS, PERIODS, readActivity } from '../call-activity.ts'
import { type Child, fill, h } from '../element.ts'
import { amountOf, count, usd } from '../format.ts'
import { linkWith } from '../router.ts'
import type { Visit } from '../visit.ts'
import { loaded } from './loaded.ts'
import { emptyState, notice } from './notice.ts'
import { plot } from './plot.ts'
import { table } from './table.ts'

const FIRST = '24h'

/** What an account did over time: requests, spend, errors. Added up here, of the calls that the log has. */
export function activityPlots(visit: Visit, account: string | undefined): HTMLElement {
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
          shown(visit, await readActivity(visit, account, period, Date.now()), period.binMs),
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

function shown(visit: Visit, activity: Activity, binMs: number): Child {
  const { bins, calls, spent, truncated } = activity
  if (calls === 0) return emptyState('No calls in this time.')
  const times = bins.map(({ from }) => from)
  return [
    truncated &&
      notice(
        'info',
        h('p', {}, `Only the newest ${count(MOST_CALLS)} calls of this time are in these figures.`),
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
    errors(visit, activity),
  ]
}

/** Without the noise behind the ninth place, and never as 1e-7. */
function dollars(value: number): string {
  return usd(value.toFixed(9).replace(/0+$/, ''))
}

function errors({ session, params }: Visit, { errors: found, calls }: Activity): Child {
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
