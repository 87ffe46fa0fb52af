import type { Account } from '../accounts.ts'
import type { Page } from '../api.ts'
import { h } from '../element.ts'
import { usd } from '../format.ts'
import { section } from '../parts/facts.ts'
import { field, form } from '../parts/form.ts'
import { emptyState } from '../parts/notice.ts'
import { paged } from '../parts/pager.ts'
import { type Column, table } from '../parts/table.ts'
import { linkTo } from '../router.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists all accounts, with a form to add one. */
export function accountList(context: ViewContext): ViewContent {
  const list = paged(
    'accounts',
    (cursor) => context.api.get<Page<Account>>('admin/accounts', { limit: 50, cursor }, context.signal),
    (rows) => (rows.length === 0 ? emptyState('No accounts yet.') : table('Accounts', COLUMNS, rows)),
  )
  return { title: 'Accounts', content: [list, section('A new account', newAccountForm(context))] }
}

function newAccountForm({ api }: ViewContext): HTMLElement {
  return form({
    label: 'A new account',
    submit: 'Create',
    fields: [
      field({ name: 'id', label: 'Id', attributes: { spellcheck: 'false' } }),
      field({ name: 'name', label: 'Name' }),
    ],
    async act({ id = '', name = '' }) {
      await api.send('POST', 'admin/accounts', { id, ...(name !== '' && { name }) })
      location.hash = linkTo('accounts', id)
      return null
    },
  })
}

const COLUMNS: readonly Column<Account>[] = [
  { name: 'Account', heads: true, cell: ({ id }) => h('a', { href: linkTo('accounts', id) }, id) },
  { name: 'Name', cell: ({ name }) => name },
  { name: 'Kind', cell: ({ prepaid }) => (prepaid ? 'prepaid' : 'postpaid') },
  { name: 'Balance', figures: true, cell: ({ balance }) => usd(balance) },
  { name: 'Leased', figures: true, cell: ({ leased }) => usd(leased) },
  { name: 'Available', figures: true, cell: ({ available }) => usd(available) },
  { name: 'Spent', figures: true, cell: ({ spent }) => usd(spent) },
]
