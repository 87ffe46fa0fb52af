import { type Child, fill, h } from '../element.ts'
import { moment, usd } from '../format.ts'
import type { Key } from '../keys.ts'
import { actionButton, resultPlace } from '../parts/action-button.ts'
import { announce } from '../parts/announcer.ts'
import { facts, section } from '../parts/facts.ts'
import { changesIn, form } from '../parts/form.ts'
import { keyFacts, keyFields, keySettingsIn } from '../parts/key-fields.ts'
import { recordLink } from '../parts/links.ts'
import { loaded } from '../parts/loaded.ts'
import { notice } from '../parts/notice.ts'
import { rotation } from '../parts/rotation.ts'
import { deletion, rowButtons } from '../parts/row-actions.ts'
import { usagePanel } from '../parts/usage-panel.ts'
import { warningsNotice } from '../parts/warnings.ts'
import { linkTo, linkWith } from '../router.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'
import { keyState } from './key-list.ts'

/** Shows a key: its spending, its settings, and buttons to rotate and delete it. */
export function keyPage(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const content = loaded('the key', async () => {
    const page = new KeyPage(context, id)
    page.show(await context.api.get<Key>(page.path, {}, context.signal))
    return page.element
  })
  return {
    title: id,
    actions: [
      h('a', { class: 'button', href: linkWith('calls', { key: id }) }, 'Calls'),
      h('a', { class: 'button', href: linkWith('changes', { subject: id }) }, 'Audit log'),
    ],
    content: [content, section('Usage', usagePanel(context, { key: id }, ['model', 'user']))],
  }
}

const KEYS = 'admin/keys'
const DELETION = 'Its calls and charges remain. The id cannot be used again.'
const nameOf = ({ id }: Key): string => id

class KeyPage {
  readonly path: string
  readonly element: HTMLElement
  readonly #context: ViewContext
  readonly #mayChange: boolean
  readonly #facts = h('div', { class: 'stack' })
  readonly #buttons = h('div', { class: 'buttons' })
  readonly #result = resultPlace()
  readonly #settings = h('div', { class: 'stack' })

  constructor(context: ViewContext, id: string) {
    this.#context = context
    this.#mayChange = may(context.session, 'admin')
    this.path = `${KEYS}/${encodeURIComponent(id)}`
    this.element = h(
      'div',
      { class: 'stack' },
      this.#facts,
      this.#buttons,
      this.#result,
      section('Settings', this.#settings),
    )
  }

  show(key: Key): void {
    fill(
      this.#facts,
      warningsNotice(key),
      facts([
        ['State', keyState(key)],
        ['Account', recordLink(this.#context.session, 'account', key.account)],
        ['Spent', usd(key.spent)],
        ['Leased', usd(key.leased)],
        ['Quota', key.quota === null ? 'none' : usd(key.quota)],
        ['Available', key.available === null ? 'as the account has' : usd(key.available)],
        ['Expires', key.expires_at === null ? 'never' : moment(key.expires_at)],
        ['Last used', key.last_used_at === null ? 'never' : moment(key.last_used_at)],
        ...(key.previous_secret_expires_at === null
          ? []
          : ([['The secret before is valid until', moment(key.previous_secret_expires_at)]] as const)),
        ['Created', moment(key.created_at)],
      ]),
    )
    if (this.#mayChange) this.#showForm(key)
    else fill(this.#settings, keyFacts(key))
  }

  #showForm(key: Key): void {
    const { enabled } = key
    const rotate = rotation<Key>(this.#context, {
      path: KEYS,
      secret: 'secret',
      overlap: '0',
      says: 'The new secret is shown once. The one before is valid for the time that you choose; any earlier one is refused.',
      nameOf,
      rotated: (answer) => this.show(answer),
    })
    const remove = deletion(this.#context, KEYS, DELETION, nameOf)
    const text = enabled ? 'Disable' : 'Enable'
    const act = (): Promise<Child> => this.#change({ enabled: !enabled })
    this.#place([
      actionButton(this.#result, { text, act }),
      ...rowButtons(this.#result, [rotate], key, nameOf, () => {}),
      ...rowButtons(this.#result, [remove], key, nameOf, () => {
        location.hash = linkTo('keys')
      }),
    ])
    const hint = h('p', { class: 'muted' }, 'Empty fields are not restricted.')
    fill(this.#settings, hint, this.#settingsForm(key))
  }

  /** Restores the focus to the button that was pressed. */
  #place(buttons: readonly HTMLElement[]): void {
    const focused = [...this.#buttons.children].indexOf(document.activeElement ?? this.#buttons)
    fill(this.#buttons, buttons)
    buttons[focused]?.focus()
  }

  #settingsForm(key: Key): HTMLElement {
    return form({
      label: 'Settings of the key',
      submit: 'Save',
      fields: keyFields(key),
      act: async (filled, before) => {
        const said = await this.#change(changesIn(keySettingsIn(filled), keySettingsIn(before)))
        fill(this.#result, said)
        return null
      },
    })
  }

  async #change(settings: object): Promise<Child> {
    this.show(await this.#context.api.send<Key>('PATCH', this.path, settings))
    announce('Saved.')
    return notice('good', h('p', {}, 'Saved. The change takes effect within 5 s.'))
  }
}
