import { type Child, fill, h } from '../element.ts'
import { moment, usd } from '../format.ts'
import { type Key, type KeyWithSecret, keySettingsIn } from '../keys.ts'
import { announce } from '../parts/announcer.ts'
import { confirmed } from '../parts/confirm.ts'
import { facts, section } from '../parts/facts.ts'
import { form } from '../parts/form.ts'
import { keyFields } from '../parts/key-fields.ts'
import { loaded } from '../parts/loaded.ts'
import { faultNotice, notice } from '../parts/notice.ts'
import { newSecret } from '../parts/secret.ts'
import { linkTo, linkWith } from '../router.ts'
import type { Shown, Visit } from '../visit.ts'
import { keyState } from './key-list.ts'

/** A key: what it has spent, its settings, its secret, its end. */
export function keyPage(visit: Visit): Shown {
  const id = visit.params.id ?? ''
  const content = loaded('the key', async () => {
    const page = new KeyPage(visit, id)
    page.show(await visit.api.get<Key>(page.path, {}, visit.signal))
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
  readonly #visit: Visit
  readonly #id: string
  readonly #facts = h('div', {})
  readonly #buttons = h('div', { class: 'buttons' })
  readonly #result = h('div', { class: 'result' })
  readonly #settings = h('div', {})

  constructor(visit: Visit, id: string) {
    this.#visit = visit
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

  /** The focus stays on the button that was pressed, by its place. */
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
    this.show(await this.#visit.api.send<Key>('PATCH', this.path, settings))
    announce('Saved.')
    return notice('good', h('p', {}, 'Saved. Every process knows within 5 s.'))
  }

  async #rotate(): Promise<Child> {
    const consequence = 'The secret that is in use now is good for nothing any more, within 5 s.'
    if (!(await confirmed(`Rotate the secret of ${this.#id}?`, consequence, 'Rotate'))) return null
    const key = await this.#visit.api.send<KeyWithSecret>('POST', `${this.path}/rotate`)
    this.show(key)
    return newSecret(key.secret, key.id)
  }

  async #delete(): Promise<Child> {
    const consequence = 'Its calls and charges stay in the books. The id cannot be used again.'
    if (!(await confirmed(`Delete ${this.#id}?`, consequence, 'Delete'))) return null
    await this.#visit.api.send('DELETE', this.path)
    location.hash = linkTo('keys')
    return null
  }
}
