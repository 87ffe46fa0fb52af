import { type Child, fill, h } from '../element.ts'
import { isLeaving } from '../view.ts'
import { faultNotice } from './notice.ts'

/** Shows that something is loading, then the result, or the error with a button to retry. */
export function loaded(what: string, load: () => Promise<Child>): HTMLElement {
  const place = h('div', { class: 'stack', 'aria-busy': 'true' })
  const attempt = async (): Promise<void> => {
    place.setAttribute('aria-busy', 'true')
    if (place.childElementCount === 0) fill(place, h('p', { class: 'waiting' }, `Loading ${what}…`))
    try {
      fill(place, await load())
    } catch (error) {
      if (isLeaving(error)) return
      const again = h('button', { type: 'button', click: () => void attempt() }, 'Try again')
      fill(place, faultNotice(error), h('p', {}, again))
    }
    place.setAttribute('aria-busy', 'false')
  }
  void attempt()
  return place
}
