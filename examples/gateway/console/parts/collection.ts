import { type Child, fill, h } from '../element.ts'
import type { ViewContext } from '../view.ts'
import { askButton, resultPlace } from './action-button.ts'
import type { Filled } from './form.ts'
import { type Listing, listing } from './listing.ts'
import { notice } from './notice.ts'
import { type RowAction, rowButtons } from './row-actions.ts'
import type { Column } from './table.ts'

/** A list of the API whose members are made, changed and deleted in the console. */
export interface Collection<T> extends Listing<T> {
  /** The word for one member, such as `operator`. */
  readonly one: string
  /** Whether the user may make and change members. */
  readonly editable: boolean
  nameOf(row: T): string
  /** The dialog for a new member. */
  readonly creation?: {
    readonly says: string
    fields(): Child
    /** Returns the body that makes a member of what was filled in. */
    bodyOf(filled: Filled): object
    /** Returns what is shown of a new member, such as its secret. */
    made?(created: T): Child
  }
  /** The actions for a member. */
  readonly actions?: readonly RowAction<T>[]
}

/** Shows a list with a button for a new member, and with buttons that change and delete each. */
export function collection<T extends { readonly id: string }>(
  context: ViewContext,
  parts: Collection<T>,
): { readonly actions: Child; readonly content: Child } {
  const { path, columns, one, editable, nameOf, creation, actions = [] } = parts
  const list = h('div', {})
  const result = resultPlace()
  const buttons: Column<T> = {
    name: 'Actions',
    cell: (row) => h('div', { class: 'buttons' }, rowButtons(result, actions, row, nameOf, show)),
  }
  const shown = editable && actions.length > 0 ? [...columns, buttons] : columns
  function show(): void {
    fill(list, listing(context, { ...parts, columns: shown }))
  }
  show()
  const create =
    editable &&
    creation &&
    askButton(result, {
      text: `New ${one}`,
      title: `A new ${one}`,
      says: creation.says,
      fields: h('div', { class: 'fields' }, creation.fields()),
      submit: 'Create',
      done: 'Created.',
      async act(filled) {
        const created = await context.api.send<T>('POST', path, creation.bodyOf(filled))
        show()
        return creation.made?.(created) ?? notice('good', h('p', {}, 'Created.'))
      },
    })
  return { actions: create, content: [result, list] }
}
