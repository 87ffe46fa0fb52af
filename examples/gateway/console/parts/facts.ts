import { type Child, h } from '../element.ts'
import { NOTHING } from '../format.ts'

/** Shows names and values; a missing value is shown as such. */
export function facts(rows: readonly (readonly [name: string, value: Child])[]): HTMLElement {
  return h(
    'dl',
    { class: 'facts' },
    rows.map(([name, value]) =>
      h(
        'div',
        {},
        h('dt', {}, name),
        h('dd', {}, value === null || value === undefined || value === '' ? NOTHING : value),
      ),
    ),
  )
}

/** Shows the most important figures of a page. */
export function tiles(rows: readonly (readonly [name: string, value: Child, note?: string])[]): HTMLElement {
  return h(
    'dl',
    { class: 'tiles' },
    rows.map(([name, value, note]) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, value, note !== undefined && h('small', {}, note))),
    ),
  )
}

/** Creates a section of a page with a heading. */
export function section(title: string, ...children: readonly Child[]): HTMLElement {
  return h('section', {}, h('h2', {}, title), ...children)
}
