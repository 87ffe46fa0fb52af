import { type Child, fill, h } from '../element.ts'
import { announce } from './announcer.ts'
import { ask, type Question } from './dialog.ts'
import { faultNotice } from './notice.ts'

/** A button that does something at once, beside forms. */
export interface Action {
  readonly text: string
  /** For screen readers, where the text is the same in every row. */
  readonly label?: string
  readonly danger?: boolean
  /** Returns what is shown then. */
  act(): Promise<Child>
}

/** Creates the place where actions show what came of them. */
export function resultPlace(): HTMLElement {
  return h('div', { class: 'result', tabindex: -1 })
}

/** Creates the button of an action. Its result, or its error, is shown in a place of the view. */
export function actionButton(result: HTMLElement, { text, label, danger, act }: Action): HTMLButtonElement {
  const run = async (): Promise<void> => {
    try {
      fill(result, await act())
    } catch (error) {
      fill(result, faultNotice(error))
    }
    // An action that shows its list again removes its own button, which had the focus.
    if (!button.isConnected && document.activeElement === document.body) result.focus()
  }
  const attributes = { type: 'button', class: danger && 'danger', 'aria-label': label }
  const button = h('button', { ...attributes, click: () => void run() }, text)
  return button
}

/** An action behind a dialog. */
export interface AskedAction extends Question<Child> {
  readonly text: string
  readonly label?: string
  /** Announced when it is done. */
  readonly done: string
}

/** Creates a button that opens a dialog. What its action returns is shown in a place of the view. */
export function askButton(result: HTMLElement, { text, label, danger, done, ...question }: AskedAction) {
  return actionButton(result, {
    text: `${text} …`,
    ...(label !== undefined && { label }),
    ...(danger && { danger }),
    async act() {
      const shown = await ask({ ...question, ...(danger && { danger }) })
      if (shown !== undefined) announce(done)
      return shown
    },
  })
}
