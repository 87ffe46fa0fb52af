import { type Child, fill, h } from '../element.ts'
import { isPeriod, PERIODS, type Period, type PeriodName, periodOf } from '../periods.ts'
import { currentPlace } from '../router.ts'
import { field, form } from './form.ts'
import { notice } from './notice.ts'

/**
 * Creates the choice of a period above what is shown of it. The choice is kept in the address, so that it can be shared
 * and outlasts a reload.
 */
export function periodChoice(query: URLSearchParams, show: (period: Period) => Child): HTMLElement {
  const place = h('div', { class: 'stack' })
  const dates = h('div', { class: 'result' })
  const asked = query.get('period') ?? ''
  let chosen: PeriodName = isPeriod(asked) ? asked : '24h'
  const buttons = PERIODS.map(([name, text]) =>
    h('button', { type: 'button', click: () => choose(name) }, text),
  )
  const draw = (from?: string, to?: string): void => {
    for (const [i, [name]] of PERIODS.entries())
      buttons[i]?.setAttribute('aria-pressed', String(name === chosen))
    const period = periodOf(chosen, Date.now(), from, to)
    fill(dates, chosen === 'custom' && datesForm(from, to))
    if (period) fill(place, show(period))
    else fill(place)
  }
  const choose = (name: PeriodName): void => {
    chosen = name
    if (name !== 'custom') keep({ period: name })
    draw()
  }
  const datesForm = (from = '', to = ''): HTMLElement =>
    form({
      label: 'Days',
      submit: 'Show',
      fields: [
        field({ name: 'from', label: 'From', attributes: { type: 'date', value: from, required: true } }),
        field({ name: 'to', label: 'To', attributes: { type: 'date', value: to, required: true } }),
      ],
      act({ from: first = '', to: last = '' }) {
        if (!periodOf('custom', 0, first, last))
          return notice('bad', 'The first day must not be behind the last.')
        keep({ period: 'custom', from: first, to: last })
        draw(first, last)
        return null
      },
    })
  draw(query.get('from') ?? undefined, query.get('to') ?? undefined)
  return h(
    'div',
    { class: 'stack' },
    h('div', { class: 'choices', role: 'group', 'aria-label': 'Period' }, buttons),
    dates,
    place,
  )
}

/** Changes the query of the address without showing the view again. */
function keep(query: Readonly<Record<string, string>>): void {
  const [path] = currentPlace().split('?')
  history.replaceState(null, '', `#${path}?${new URLSearchParams(query)}`)
}
