import type { Page } from '../api.ts'
import { h } from '../element.ts'
import { moment, usd } from '../format.ts'
import { type Key, type KeyWithSecret, keySettingsIn } from '../keys.ts'
import { section } from '../parts/facts.ts'
import { field, filledIn, form } from '../parts/form.ts'
import { keyFields } from '../parts/key-fields.ts'
import { emptyState } from '../parts/notice.ts'
import { paged } from '../parts/pager.ts'
import { newSecret } from '../parts/secret.ts'
import { badge } from '../parts/status.ts'
import { type Column, table } from '../parts/table.ts'
import { linkTo, linkWith } from '../router.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists API keys, with a form to create one. */
export function keyList(context: ViewContext): ViewContent {
  const account = context.query.get('account') ?? ''
  const list = h('div', {}, keys(context, account))
  return {
    title: 'Keys',
    content: [filterForm(account), list, section('A new key', newKeyForm(context, account, list))],
  }
}

function keys({ api, signal }: ViewContext, account: string): HTMLElement {
  return paged(
    'keys',
    (cursor) => api.get<Page<Key>>('admin/keys', { account, cursor, limit: 50 }, signal),
    (rows) => (rows.length === 0 ? emptyState('No keys that fit.') : table('Keys', COLUMNS, rows)),
  )
}

function filterForm(account: string): HTMLElement {
  const element = h(
    'form',
    {
      class: 'filters',
      'aria-label': 'Filters',
      submit: (event: Event) => {
        event.preventDefault()
        location.hash = linkWith('keys', filledIn(element))
      },
    },
    h(
      'div',
      { class: 'fields' },
      field({ name: 'account', label: 'Account', attributes: { value: account } }),
      h('div', { class: 'field-button' }, h('button', { type: 'submit', class: 'primary' }, 'Filter')),
    ),
  )
  return element
}

function newKeyForm(context: ViewContext, account: string, list: HTMLElement): HTMLElement {
  return form({
    label: 'A new key',
    submit: 'Create',
    fields: [
      field({ name: 'owner', label: 'Account', attributes: { value: account, required: true } }),
      field({
        name: 'id',
        label: 'Id',
        hint: 'Made up where it is left empty.',
        attributes: { spellcheck: 'false' },
      }),
      keyFields(),
    ],
    async act(filled) {
      const { id = '', owner } = filled
      const wanted = { account: owner, ...(id !== '' && { id }), ...keySettingsIn(filled) }
      const key = await context.api.send<KeyWithSecret>('POST', 'admin/keys', wanted)
      list.replaceChildren(keys(context, account))
      return newSecret(key.secret, key.id)
    },
  })
}

export function keyState({ enabled, expires_at: expires }: Key): HTMLElement {
  if (!enabled) return badge('off', 'disabled')
  return expires !== null && Date.parse(expires) <= Date.now()
    ? badge('bad', 'expired')
    : badge('good', 'enabled')
}

const COLUMNS: readonly Column<Key>[] = [
  { name: 'Key', heads: true, cell: ({ id }) => h('a', { href: linkTo('keys', id) }, id) },
  { name: 'Account', cell: ({ account }) => h('a', { href: linkTo('accounts', account) }, account) },
  { name: 'State', cell: (key) => keyState(key) },
  { name: 'Expires', cell: ({ expires_at }) => (expires_at === null ? 'never' : moment(expires_at)) },
  { name: 'Models', cell: ({ allow_models }) => allow_models?.join(', ') ?? 'all' },
  { name: 'Spent', figures: true, cell: ({ spent }) => usd(spent) },
  { name: 'Quota', figures: true, cell: ({ quota }) => (quota === null ? 'none' : usd(quota)) },
]
