import { type Attributes, type Child, fill, h } from '../element.ts'
import { linkWith } from '../router.ts'
import { faultNotice } from './notice.ts'

/** A labelled input; what it needs to know to be filled in stands below it. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly attributes?: Attributes
}

/** The element of a field. */
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

/** What was filled in, by name, without the space around it. */
export type Filled = Readonly<Record<string, string>>

/** What a form is made of. */
export interface FormParts {
  readonly label: string
  readonly fields: Child
  readonly submit: string
  /** Does what the form is for; what it answers is shown behind the form, as is a fault. */
  act(filled: Filled): Promise<Child> | Child
}

/** A form that says what came of it, and cannot be sent twice at once. */
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

/** What narrows a list: filled in, it leads to the list's own address with what stands in it. */
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
