import { type Child, fill, h } from '../element.ts'
import { isLeaving } from '../visit.ts'
import { faultNotice } from './notice.ts'

/**
 * A place that shows what it waits for: first that it is on its way, then it, or why it did not come, with a button to
 * ask again.
 */
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
