import { fill, h } from '../element.ts'

/** An element through which screen readers announce changes without a move of the focus. */
export const announcer = h('div', { class: 'unseen', role: 'status', 'aria-live': 'polite' })

export function announce(text: string): void {
  fill(announcer, text)
}
