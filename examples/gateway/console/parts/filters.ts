import { type Child, h } from '../element.ts'
import { localTime } from '../format.ts'
import { linkTo, linkWith } from '../router.ts'
import type { ViewContext } from '../view.ts'
import { choice, type Field, field, filledIn, pairsIn } from './form.ts'

/** A filter of a list: a field, a field with suggestions, or a choice of options. */
export interface Filter extends Field {
  readonly options?: readonly (readonly [value: string, text: string])[]
  readonly suggestions?: readonly string[]
  /** Returns what is asked for a value. Defaults to the value under the filter's name. */
  asked?(value: string): Readonly<Record<string, string>>
}

/** The filter for ids of accounts, as several lists have it. */
export const ACCOUNT: Filter = { name: 'account', label: 'Account', attributes: { spellcheck: 'false' } }
export const KEY: Filter = { name: 'key', label: 'Key', attributes: { spellcheck: 'false' } }
export const MODEL: Filter = { name: 'model', label: 'Model', attributes: { spellcheck: 'false' } }
export const LINE: Filter = { name: 'line', label: 'Line', attributes: { spellcheck: 'false' } }
export const USER: Filter = { name: 'user', label: 'User', attributes: { spellcheck: 'false' } }
export const TAG: Filter = {
  name: 'tag',
  label: 'Tags',
  attributes: { placeholder: 'team=search', spellcheck: 'false' },
  asked: (value) =>
    Object.fromEntries(Object.entries(pairsIn(value)).map(([name, text]) => [`tag:${name}`, text])),
}

/** A filter for a time. Addresses may have it in local time or in ISO 8601. */
export function timeFilter(name: 'from' | 'to', label: string): Filter {
  const asked = (value: string) => {
    const time = new Date(value)
    return { [name]: Number.isNaN(time.getTime()) ? '' : time.toISOString() }
  }
  return { name, label, attributes: { type: 'datetime-local' }, asked }
}

/** A choice of one value, with "all" before it. */
export function oneOf(name: string, label: string, values: readonly string[]): Filter {
  return { name, label, options: [['', 'all'], ...values.map((value) => [value, value] as const)] }
}

/** Returns the query of the filters in the address. */
export function filtersIn({ query }: ViewContext, filters: readonly Filter[]): Record<string, string> {
  const asked = filters.map(({ name, asked }) => {
    const value = query.get(name) ?? ''
    return asked ? asked(value) : { [name]: value }
  })
  return Object.assign({}, ...asked)
}

/** Creates the filter form of a view. It leads to the address of the filtered view, which can be shared. */
export function filterForm(
  { query, signal }: ViewContext,
  view: string,
  filters: readonly Filter[],
  ...more: readonly Child[]
): HTMLElement {
  const form = h(
    'form',
    {
      class: 'filters',
      'aria-label': 'Filters',
      submit: (event: Event) => {
        event.preventDefault()
        location.hash = linkWith(view, filledIn(form))
      },
    },
    h(
      'div',
      { class: 'fields' },
      filters.map((filter) => filterField(filter, query.get(filter.name) ?? '')),
      more,
      h(
        'div',
        { class: 'field-button' },
        h('button', { type: 'submit', class: 'primary' }, 'Filter'),
        query.size > 0 && h('a', { class: 'button', href: linkTo(view) }, 'Clear'),
      ),
    ),
  )
  return folded(form, query.size, signal)
}

/** Folds the filters where the page is narrow: there they would fill the first screen. */
function folded(form: HTMLFormElement, set: number, signal: AbortSignal): HTMLElement {
  const narrow = matchMedia('(max-width: 760px)')
  const summary = h('summary', {}, set === 0 ? 'Filters' : `Filters: ${set} set`)
  const fold = h('details', { class: 'fold', open: !narrow.matches }, summary, form)
  const follow = (): void => {
    fold.open = !narrow.matches
  }
  narrow.addEventListener('change', follow, { signal })
  return fold
}

function filterField(filter: Filter, value: string) {
  const { name, options, suggestions, attributes } = filter
  if (options) return choice(filter, options, value)
  const list = suggestions && `${name}-suggestions`
  return [
    field({
      ...filter,
      attributes: {
        ...attributes,
        value: attributes?.type === 'datetime-local' ? localTime(value) : value,
        list,
      },
    }),
    suggestions &&
      h(
        'datalist',
        { id: list },
        suggestions.map((option) => h('option', { value: option })),
      ),
  ]
}
