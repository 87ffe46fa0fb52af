import { h, svg } from '../element.ts'

/** Shows which part of an amount is used, as a bar with its percentage. It has a colour of warning only where a limit is reached. */
export function shareBar(share: number, tone: 'usual' | 'warn' | 'bad'): HTMLElement {
  const shown = Math.min(1, Math.max(0, share))
  return h(
    'span',
    { class: `share share-${tone}` },
    svg(
      'svg',
      { width: '100%', height: 8, 'aria-hidden': 'true' },
      svg('rect', { class: 'track', width: '100%', height: 8, rx: 4 }),
      shown > 0 && svg('rect', { class: 'used', width: `${(shown * 100).toFixed(1)}%`, height: 8, rx: 4 }),
    ),
    h('span', { class: 'num' }, percent(share)),
  )
}

/** Rounds down: what is not used up is never shown as 100 %. */
function percent(share: number): string {
  const parts = share * 100
  return `${parts > 0 && parts < 1 ? '<1' : Math.floor(parts)}\u00a0%`
}
