import type { Page } from '../api.ts'
import { type Child, fill, h } from '../element.ts'
import { announce } from './announcer.ts'
import { loaded } from './loaded.ts'

/**
 * Shows a list page by page, with buttons for the next and the first page.
 *
 * @param load reads the page of a cursor; undefined means the first page.
 * @param show returns the element of a page.
 */
export function paged<T, P extends Page<T> = Page<T>>(
  what: string,
  load: (cursor: string | undefined) => Promise<P>,
  show: (rows: readonly T[], page: P) => Child | Promise<Child>,
): HTMLElement {
  const place = h('div', { class: 'stack' })
  let number = 1
  let next: string | null = null
  const turnTo = (cursor: string | undefined, to: number): void => {
    const shown = loaded(what, async () => {
      const page = await load(cursor)
      number = to
      next = page.next_cursor
      if (number > 1) announce(`Page ${number}: ${page.data.length} ${what}`)
      const content = await show(page.data, page)
      describe()
      return content
    })
    fill(place, shown)
  }
  // The buttons stay while pages come and go, so that they keep the focus; a disabled button would lose it.
  const first = h('button', { type: 'button', click: () => number > 1 && turnTo(undefined, 1) }, 'First page')
  const counter = h('span', { class: 'num' })
  const further = h(
    'button',
    { type: 'button', click: () => next !== null && turnTo(next, number + 1) },
    'Next page',
  )
  const pager = h('nav', { class: 'pager', 'aria-label': `Pages of ${what}` }, first, counter, further)
  const describe = (): void => {
    first.setAttribute('aria-disabled', String(number === 1))
    further.setAttribute('aria-disabled', String(next === null))
    fill(counter, `Page ${number}`)
    pager.hidden = number === 1 && next === null
  }
  describe()
  turnTo(undefined, 1)
  return h('div', { class: 'stack' }, place, pager)
}
