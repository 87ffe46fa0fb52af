import { h } from '../element.ts'

/** Asks for confirmation and resolves with the answer. Escape means no. */
export function confirmed(question: string, consequence: string, yes: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const dialog: HTMLDialogElement = h(
    'dialog',
    { 'aria-labelledby': 'question', close: () => end(dialog, resolve) },
    h('h2', { id: 'question' }, question),
    h('p', {}, consequence),
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', autofocus: true, click: () => dialog.close('') }, 'Cancel'),
      h('button', { type: 'button', class: 'danger', click: () => dialog.close('yes') }, yes),
    ),
  )
  document.body.append(dialog)
  dialog.showModal()
  return promise
}

function end(dialog: HTMLDialogElement, resolve: (value: boolean) => void): void {
  resolve(dialog.returnValue === 'yes')
  dialog.remove()
}
