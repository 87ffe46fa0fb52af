import { type Attributes, type Child, fill, h } from '../element.ts'
import { linkWith } from '../router.ts'
import { faultNotice } from './notice.ts'

/** A labelled input with an optional hint below it. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly attributes?: Attributes
}

/** Creates the element of a text field. */
export function field({ name, label, hint, attributes }: Field): HTMLElement {
  const id = nextId(name)
  const hintId = `${id}-hint`
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, label),
    h('input', { id, name, autocomplete: 'off', 'aria-describedby': hint && hintId, ...attributes }),
    hint !== undefined && h('small', { id: hintId }, hint),
  )
}

/** A field with several lines. */
export function textField({ name, label, hint, attributes }: Field): HTMLElement {
  const id = nextId(name)
  const hintId = `${id}-hint`
  return h(
    'div',
    { class: 'field field-wide' },
    h('label', { for: id }, label),
    h('textarea', { id, name, rows: 4, 'aria-describedby': hint && hintId, ...attributes }),
    hint !== undefined && h('small', { id: hintId }, hint),
  )
}

/** A choice of one of several. */
export function choice(
  { name, label }: Field,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
): HTMLElement {
  const id = nextId(name)
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, label),
    h(
      'select',
      { id, name },
      options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
    ),
  )
}

/** The values of a form by name, trimmed. */
export type Filled = Readonly<Record<string, string>>

/** Options of a form. */
export interface FormParts {
  readonly label: string
  readonly fields: Child
  readonly submit: string
  /** Submits the form; its result, or its error, is shown behind the form. */
  act(filled: Filled): Promise<Child> | Child
}

/** Creates a form that shows its result and cannot be submitted twice at once. */
export function form({ label, fields, submit, act }: FormParts): HTMLFormElement {
  const button = h('button', { type: 'submit', class: 'primary' }, submit)
  const result = h('div', { class: 'result' })
  let running = false
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (running) return
    running = true
    button.setAttribute('aria-disabled', 'true')
    fill(result)
    try {
      fill(result, await act(filledIn(element)))
    } catch (error) {
      fill(result, faultNotice(error))
    } finally {
      running = false
      button.removeAttribute('aria-disabled')
    }
  }
  const element = h(
    'form',
    { 'aria-label': label, submit: send },
    h('div', { class: 'fields' }, fields, h('div', { class: 'field-button' }, button)),
    result,
  )
  return element
}

export function filledIn(element: HTMLFormElement): Filled {
  const entries = [...new FormData(element)]
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value).trim()]))
}

let ids = 0

function nextId(name: string): string {
  ids++
  return `${name}-${ids}`
}

/** Creates the filter form of a list. Submitting it leads to the address of the filtered list. */
export function filterForm(list: string, ...fields: Child[]): HTMLFormElement {
  const form = h(
    'form',
    {
      class: 'filters',
      'aria-label': 'Filters',
      submit: (event: Event) => {
        event.preventDefault()
        location.hash = linkWith(list, filledIn(form))
      },
    },
    h(
      'div',
      { class: 'fields' },
      ...fields,
      h('div', { class: 'field-button' }, h('button', { type: 'submit', class: 'primary' }, 'Filter')),
    ),
  )
  return form
}
