import { fill, h } from '../element.ts'
import { announce } from './announcer.ts'

const SHOWN_MS = 2000

/** Creates a button that copies a text and shows "copied" for a moment. */
export function copyButton(text: string, what: string): HTMLElement {
  const words = `Copy ${what}`
  const button = h('button', { type: 'button', class: 'quiet' }, words)
  button.addEventListener('click', async () => {
    const done = await navigator.clipboard.writeText(text).then(
      () => 'Copied',
      // Browsers allow copying on secure pages only.
      () => 'Copying was blocked by the browser',
    )
    fill(button, done)
    announce(done)
    setTimeout(() => fill(button, words), SHOWN_MS)
  })
  return button
}
