import { type Attributes, type Child, fill, h } from '../element.ts'
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

/** Check boxes of which several can be chosen; their values are one text, separated by commas. */
export function checks(
  name: string,
  label: string,
  values: readonly string[],
  chosen: readonly string[],
  ...more: readonly Child[]
): HTMLElement {
  const box = (value: string): Child =>
    h('label', {}, h('input', { type: 'checkbox', name, value, checked: chosen.includes(value) }), value)
  return h('fieldset', { class: 'checks' }, h('legend', {}, label), values.map(box), more)
}

/** The values of a form by name, trimmed. */
export type Filled = Readonly<Record<string, string>>

export interface FormParts {
  readonly label: string
  readonly fields: Child
  readonly submit: string
  readonly danger?: boolean | undefined
  /** A button beside the one that submits. */
  readonly beside?: Child
  /** Submits the form; its result, or its error, is shown behind the form. `before` is what it had when it was made, or submitted before. */
  act(filled: Filled, before: Filled): Promise<Child> | Child
}

/** Creates a form that shows its result and cannot be submitted twice at once. */
export function form({ label, fields, submit, danger, beside, act }: FormParts): HTMLFormElement {
  const button = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, submit)
  const result = h('div', { class: 'result' })
  let running = false
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (running) return
    running = true
    button.setAttribute('aria-disabled', 'true')
    fill(result)
    try {
      const filled = filledIn(element)
      fill(result, await act(filled, before))
      before = filled
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
    h('div', { class: 'fields' }, fields, h('div', { class: 'field-button' }, beside, button)),
    result,
  )
  let before = filledIn(element)
  return element
}

/**
 * Returns the members that differ from those before. A field may show less than there is, such as no seconds: what nobody has
 * changed is not sent back.
 */
export function changesIn(members: object, before: object): object {
  const known = new Map(Object.entries(before))
  const isChanged = (name: string, value: unknown) =>
    JSON.stringify(value) !== JSON.stringify(known.get(name))
  return Object.fromEntries(Object.entries(members).filter(([name, value]) => isChanged(name, value)))
}

export function filledIn(element: HTMLFormElement): Filled {
  const form = new FormData(element)
  // A name that several fields have, such as of check boxes, has all their values.
  const textOf = (name: string): string => {
    const texts = form.getAll(name).map((value) => String(value).trim())
    return texts.filter((text) => text !== '').join(',')
  }
  return Object.fromEntries([...new Set(form.keys())].map((name) => [name, textOf(name)]))
}

let ids = 0

function nextId(name: string): string {
  ids++
  return `${name}-${ids}`
}

/** Returns the names in a field, separated by spaces or commas; null if there is none. */
export function namesIn(text = ''): readonly string[] | null {
  const names = text.split(/[\s,]+/).filter((name) => name !== '')
  return names.length === 0 ? null : names
}

const PAIR = /("(?:[^"\\]|\\.)*"|[^\s,="]+)=("(?:[^"\\]|\\.)*"|[^\s,]*)/g
const PLAIN = /^[^\s,"\\]+$/

/** Returns the pairs in a field, such as `team=search env=prod`. What has spaces stands in quotes: `team="data science"`. */
export function pairsIn(text = ''): Readonly<Record<string, string>> {
  const pairs = [...text.matchAll(PAIR)]
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [unquoted(name), unquoted(value)]))
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.replace(/^"|"$/g, '').replaceAll(/\\(.)/g, '$1') : text
}

function quoted(text: string): string {
  return PLAIN.test(text) ? text : `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

/** Returns pairs as they are typed into a field. */
export function pairsText(pairs: Readonly<Record<string, string>> = {}): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${quoted(name)}=${quoted(value)}`)
    .join(' ')
}

/** Returns the number in a field; null if it is empty. */
export function numberIn(text = ''): number | null {
  return text === '' ? null : Number(text)
}
