import { ApiFault } from '../api.ts'
import { type Child, h } from '../element.ts'

/** Shows a notice: information, success, a warning or an error. */
export function notice(tone: 'info' | 'good' | 'warn' | 'bad', ...children: readonly Child[]): HTMLElement {
  return h('div', { class: `notice notice-${tone}`, role: tone === 'bad' ? 'alert' : null }, ...children)
}

/** Shows that a list is empty. */
export function emptyState(...children: readonly Child[]): HTMLElement {
  return h('p', { class: 'empty' }, ...children)
}

/** Shows the error of a request with its request id, for the log. */
export function faultNotice(error: unknown): HTMLElement {
  return notice('bad', ...wordsOf(error))
}

function wordsOf(error: unknown): Child[] {
  if (!(error instanceof ApiFault)) return [h('p', {}, `The console failed: ${String(error)}`)]
  const { status, code, message, requestId } = error
  const meaning =
    status === 404 && code === 'not_found' ? 'Not found, or not available on this gateway.' : message
  const origin = [status === 0 ? null : String(status), code, requestId].filter((word) => word !== null)
  return [h('p', {}, meaning), origin.length > 0 && h('p', { class: 'mono small' }, origin.join(' · '))]
}
