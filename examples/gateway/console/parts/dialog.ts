import { type Child, h } from '../element.ts'
import { type Filled, form } from './form.ts'

/** A dialog that says what an action does, before it does it. */
export interface Question<T> {
  readonly title: string
  /** The description of what the action does. */
  readonly says: Child
  readonly fields?: Child
  readonly submit: string
  readonly danger?: boolean
  /** Does it. A fault is shown in the dialog, which stays open. */
  act(filled: Filled): Promise<T>
}

/**
 * Opens a dialog, and resolves with what its action returned; with undefined if the user cancelled. Escape cancels, but
 * nothing does while the action runs: what it returns may be a secret that is shown once. The
 * browser keeps the focus in the dialog, and gives it back to the element that had it.
 */
export function ask<T>({ title, says, fields, submit, danger, act }: Question<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>()
  let result: T | undefined
  let isRunning = false
  const dialog: HTMLDialogElement = h(
    'dialog',
    {
      'aria-labelledby': 'question',
      close: () => {
        // The browser closes it for a second Escape, whatever the page says to the first.
        if (isRunning) {
          dialog.showModal()
          return
        }
        dialog.remove()
        resolve(result)
      },
    },
    h('h2', { id: 'question' }, title),
    typeof says === 'string' ? h('p', {}, says) : says,
    form({
      label: title,
      fields: fields ?? null,
      submit,
      danger,
      beside: h(
        'button',
        {
          type: 'button',
          autofocus: fields === undefined,
          click: () => {
            if (!isRunning) dialog.close()
          },
        },
        'Cancel',
      ),
      async act(filled) {
        isRunning = true
        try {
          result = await act(filled)
        } finally {
          isRunning = false
        }
        dialog.close()
        return null
      },
    }),
  )
  document.body.append(dialog)
  dialog.showModal()
  return promise
}

/** Asks for confirmation; false if the user cancelled. */
export async function confirmed(title: string, says: Child, submit: string, danger = true): Promise<boolean> {
  return (await ask({ title, says, submit, danger, act: async () => true })) ?? false
}
