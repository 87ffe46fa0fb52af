import { type Child, h } from '../element.ts'
import type { ViewContext } from '../view.ts'
import { askButton } from './action-button.ts'
import type { Filled } from './form.ts'
import { notice } from './notice.ts'

/** An action on a member of a list, behind a dialog that says what it does. */
export interface RowAction<T> {
  readonly text: string
  title(row: T): string
  readonly says: string
  fields?(row: T): Child
  readonly submit: string
  readonly danger?: boolean
  /** Shown and announced when it is done. */
  readonly done: string
  /** Returns what is shown instead, such as a new secret. */
  act(row: T, filled: Filled): Promise<Child>
}

/** Returns the action that deletes a member. */
export function deletion<T extends { readonly id: string }>(
  { api }: ViewContext,
  path: string,
  says: string,
  nameOf: (row: T) => string,
): RowAction<T> {
  return {
    text: 'Delete',
    title: (row) => `Delete ${nameOf(row)}?`,
    says,
    submit: 'Delete',
    danger: true,
    done: 'Deleted.',
    async act({ id }) {
      await api.send('DELETE', `${path}/${encodeURIComponent(id)}`)
      return null
    },
  }
}

/** Creates the buttons of a member. `then` is called when one has done its work. */
export function rowButtons<T>(
  result: HTMLElement,
  actions: readonly RowAction<T>[],
  row: T,
  nameOf: (row: T) => string,
  then: () => void,
): readonly HTMLElement[] {
  return actions.map(({ title, fields, act, ...action }) =>
    askButton(result, {
      ...action,
      label: `${action.text} ${nameOf(row)}`,
      title: title(row),
      fields: fields?.(row),
      async act(filled) {
        const shown = await act(row, filled)
        then()
        return shown ?? notice('good', h('p', {}, action.done))
      },
    }),
  )
}
