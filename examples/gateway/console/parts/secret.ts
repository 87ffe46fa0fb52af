import { h } from '../element.ts'
import { copyButton } from './copy-button.ts'
import { notice } from './notice.ts'

/** Shows a new secret, which is shown only once. */
export function newSecret(text: string, of: string): HTMLElement {
  return notice(
    'good',
    h('p', {}, h('strong', {}, `The secret of ${of}. It is shown this once: store it now.`)),
    h('p', { class: 'copied-line' }, h('code', { class: 'secret' }, text), copyButton(text, 'the secret')),
  )
}
