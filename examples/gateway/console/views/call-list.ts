import { ERROR_CODES } from '../advice.ts'
import { h } from '../element.ts'
import { field, filledIn } from '../parts/form.ts'
import { LiveCalls } from '../parts/live-calls.ts'
import { linkTo, linkWith } from '../router.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const FILTERS = ['account', 'model', 'status', 'code', 'from', 'to'] as const

/** Lists calls, newest first. The filters are in the address, so that you can share a list as a link. */
export function callList(context: ViewContext): ViewContent {
  const { query } = context
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? '']))
  const calls = new LiveCalls(context, { ...filters, from: isoOf(filters.from), to: isoOf(filters.to) })
  return { title: 'Calls', actions: calls.controls, content: [filterForm(context, filters), calls.element] }
}

function filterForm({ session }: ViewContext, filters: Readonly<Record<string, string>>): HTMLElement {
  const input = (name: (typeof FILTERS)[number], label: string, attributes: Record<string, string> = {}) =>
    field({ name, label, attributes: { value: filters[name] ?? '', ...attributes } })
  const apply = (event: Event): void => {
    event.preventDefault()
    location.hash = linkWith('calls', filledIn(element))
  }
  const element = h(
    'form',
    { class: 'filters', 'aria-label': 'Filters', submit: apply },
    h(
      'div',
      { class: 'fields' },
      session.kind === 'admin' && input('account', 'Account'),
      input('model', 'Model'),
      input('status', 'Status', {
        inputmode: 'numeric',
        pattern: '[1-5][0-9][0-9]',
        title: 'An HTTP status',
        size: '5',
      }),
      input('code', 'Error code', { list: 'codes', spellcheck: 'false' }),
      h(
        'datalist',
        { id: 'codes' },
        ERROR_CODES.map((code) => h('option', { value: code })),
      ),
      input('from', 'From', { type: 'datetime-local' }),
      input('to', 'To', { type: 'datetime-local' }),
      h(
        'div',
        { class: 'field-button' },
        h('button', { type: 'submit', class: 'primary' }, 'Filter'),
        h('a', { class: 'button', href: linkTo('calls') }, 'Clear'),
      ),
    ),
  )
  return element
}

/** Converts a local time to ISO 8601. */
function isoOf(local: string | undefined): string {
  const time = new Date(local ?? '')
  return Number.isNaN(time.getTime()) ? '' : time.toISOString()
}
