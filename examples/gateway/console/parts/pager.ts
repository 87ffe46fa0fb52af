import type { Page } from '../api.ts'
import { type Child, fill, h } from '../element.ts'
import { printReadyMessage } from './announcer.ts'
import { loaded } from './loaded.ts'

/**
 * Shows a list page by page, with buttons for the next and the first page.
 *
 * @param load reads the page of a cursor; undefined means the first page.
 * @param show returns the element of a page.
 */
export function paged<T>(
  what: string,
  load: (cursor: string | undefined) => Promise<Page<T>>,
  show: (rows: readonly T[]) => Child,
): HTMLElement {
  const place = h('div', { class: 'stack' })
  const turnTo = (cursor: string | undefined, number: number): void => {
    const page = loaded(what, async () => {
      const { data, next_cursor: next } = await load(cursor)
      if (number > 1) printReadyMessage(`Page ${number}: ${data.length} ${what}`)
      return [show(data), buttons(number, next)]
    })
    fill(place, page)
  }
  const buttons = (number: number, next: string | null): Child => {
    if (number === 1 && next === null) return null
    return h(
      'nav',
      { class: 'pager', 'aria-label': `Pages of ${what}` },
      h(
        'button',
        { type: 'button', disabled: number === 1, click: () => turnTo(undefined, 1) },
        'First page',
      ),
      h('span', { class: 'num' }, `Page ${number}`),
      h(
        'button',
        { type: 'button', disabled: next === null, click: () => turnTo(next ?? undefined, number + 1) },
        'Next page',
      ),
    )
  }
  turnTo(undefined, 1)
  return place
}
