import { type Child, fill, h } from '../element.ts'
import { moment, usd } from '../format.ts'
import { type Key, type KeyWithSecret, keySettingsIn } from '../keys.ts'
import { printReadyMessage } from '../parts/announcer.ts'
import { confirmed } from '../parts/confirm.ts'
import { facts, section } from '../parts/facts.ts'
import { form } from '../parts/form.ts'
import { keyFields } from '../parts/key-fields.ts'
import { loaded } from '../parts/loaded.ts'
import { faultNotice, notice } from '../parts/notice.ts'
import { newSecret } from '../parts/secret.ts'
import { linkTo, linkWith } from '../router.ts'
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
    actions: h('a', { class: 'button', href: linkWith('changes', { subject: id }) }, 'Changes'),
    content,
  }
}

class KeyPage {
  readonly path: string
  readonly element: HTMLElement
  readonly #context: ViewContext
  readonly #id: string
  readonly #facts = h('div', {})
  readonly #buttons = h('div', { class: 'buttons' })
  readonly #result = h('div', { class: 'result' })
  readonly #settings = h('div', {})

  constructor(context: ViewContext, id: string) {
    this.#context = context
    this.#id = id
    this.path = `admin/keys/${encodeURIComponent(id)}`
    this.element = h(
      'div',
      { class: 'stack' },
      this.#facts,
      this.#buttons,
      this.#result,
      section(
        'Settings',
        h('p', { class: 'muted' }, 'What is left empty is not restricted.'),
        this.#settings,
      ),
    )
  }

  show(key: Key): void {
    fill(
      this.#facts,
      facts([
        ['State', keyState(key)],
        ['Account', h('a', { href: linkTo('accounts', key.account) }, key.account)],
        ['Spent', usd(key.spent)],
        ['Leased', usd(key.leased)],
        ['Quota', key.quota === null ? 'none' : usd(key.quota)],
        ['Available', key.available === null ? 'as the account has' : usd(key.available)],
        ['Expires', key.expires_at === null ? 'never' : moment(key.expires_at)],
        ['Created', moment(key.created_at)],
      ]),
    )
    const { enabled } = key
    this.#place([
      this.#button(enabled ? 'Disable' : 'Enable', () => this.#change({ enabled: !enabled })),
      this.#button('Rotate the secret', () => this.#rotate()),
      this.#button('Delete', () => this.#delete(), 'danger'),
    ])
    fill(this.#settings, this.#settingsForm(key))
  }

  /** Restores the focus to the button that was pressed. */
  #place(buttons: readonly HTMLButtonElement[]): void {
    const focused = [...this.#buttons.children].indexOf(document.activeElement ?? this.#buttons)
    fill(this.#buttons, buttons)
    buttons[focused]?.focus()
  }

  #button(text: string, act: () => Promise<Child>, className = ''): HTMLButtonElement {
    const run = async (): Promise<void> => {
      try {
        fill(this.#result, await act())
      } catch (error) {
        fill(this.#result, faultNotice(error))
      }
    }
    return h('button', { type: 'button', class: className, click: () => void run() }, text)
  }

  #settingsForm(key: Key): HTMLElement {
    return form({
      label: 'Settings of the key',
      submit: 'Save',
      fields: keyFields(key),
      act: async (filled) => {
        const said = await this.#change(keySettingsIn(filled))
        fill(this.#result, said)
        return null
      },
    })
  }

  async #change(settings: object): Promise<Child> {
    this.show(await this.#context.api.send<Key>('PATCH', this.path, settings))
    printReadyMessage('Saved.')
    return notice('good', h('p', {}, 'Saved. Every process knows within 5 s.'))
  }

  async #rotate(): Promise<Child> {
    const consequence = 'The secret that is in use now is good for nothing any more, within 5 s.'
    if (!(await confirmed(`Rotate the secret of ${this.#id}?`, consequence, 'Rotate'))) return null
    const key = await this.#context.api.send<KeyWithSecret>('POST', `${this.path}/rotate`)
    this.show(key)
    return newSecret(key.secret, key.id)
  }

  async #delete(): Promise<Child> {
    const consequence = 'Its calls and charges stay in the books. The id cannot be used again.'
    if (!(await confirmed(`Delete ${this.#id}?`, consequence, 'Delete'))) return null
    await this.#context.api.send('DELETE', this.path)
    location.hash = linkTo('keys')
    return null
  }
}
