import type { Account } from '../accounts.ts'
import { h } from '../element.ts'
import { usd } from '../format.ts'
import { collection } from '../parts/collection.ts'
import { field } from '../parts/form.ts'
import { badge } from '../parts/status.ts'
import type { Column } from '../parts/table.ts'
import { warningsBadge } from '../parts/warnings.ts'
import { linkTo } from '../router.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists all accounts, with a dialog for a new one. */
export function accountList(context: ViewContext): ViewContent {
  return {
    title: 'Accounts',
    ...collection<Account>(context, {
      what: 'accounts',
      path: 'admin/accounts',
      columns: COLUMNS,
      empty: 'No accounts yet.',
      one: 'account',
      editable: may(context.session, 'admin'),
      nameOf: ({ id }) => id,
      creation: {
        says: 'It is prepaid, with nothing deposited. Keys, deposits and limits come next, on its page.',
        fields: () => [
          field({ name: 'id', label: 'Id', attributes: { spellcheck: 'false', required: true } }),
          field({ name: 'name', label: 'Name' }),
        ],
        bodyOf: ({ id, name }) => ({ id, ...(name && { name }) }),
        made({ id }) {
          location.hash = linkTo('accounts', id)
          return null
        },
      },
    }),
  }
}

const COLUMNS: readonly Column<Account>[] = [
  { name: 'Account', heads: true, cell: ({ id }) => h('a', { href: linkTo('accounts', id) }, id) },
  { name: 'Name', cell: ({ name }) => name },
  {
    name: 'State',
    cell: (account) => [
      account.status === 'suspended' ? badge('bad', 'suspended') : badge('good', 'active'),
      warningsBadge(account),
    ],
  },
  { name: 'Kind', cell: ({ prepaid }) => (prepaid ? 'prepaid' : 'postpaid') },
  { name: 'Balance', figures: true, cell: ({ balance }) => usd(balance) },
  { name: 'Leased', figures: true, cell: ({ leased }) => usd(leased) },
  { name: 'Available', figures: true, cell: ({ available }) => usd(available) },
  { name: 'Spent', figures: true, cell: ({ spent }) => usd(spent) },
]
