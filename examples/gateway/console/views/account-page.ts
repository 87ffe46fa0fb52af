import type { Account } from '../accounts.ts'
import { type Child, fill, h } from '../element.ts'
import { usd } from '../format.ts'
import type { Key } from '../keys.ts'
import { accountFacts, accountForm } from '../parts/account-settings.ts'
import { actionButton, askButton, resultPlace } from '../parts/action-button.ts'
import { announce } from '../parts/announcer.ts'
import { section, tiles } from '../parts/facts.ts'
import { leaseTable } from '../parts/lease-table.ts'
import { listing } from '../parts/listing.ts'
import { loaded } from '../parts/loaded.ts'
import { adjustmentForm, depositForm } from '../parts/money-forms.ts'
import { notice } from '../parts/notice.ts'
import { badge } from '../parts/status.ts'
import { usagePanel } from '../parts/usage-panel.ts'
import { warningsNotice } from '../parts/warnings.ts'
import { linkWith } from '../router.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'
import { keyColumns } from './key-list.ts'

/** Shows the account of the session's key. Its usage is on the overview. */
export function ownAccountPage(context: ViewContext): ViewContent {
  const figures = loaded('the account', async () => {
    const account = await context.api.get<Account>('v1/account', {}, context.signal)
    return [
      h('p', { class: 'mono subject' }, account.id),
      money(account),
      section('Limits', accountFacts(account)),
    ]
  })
  return { title: 'Account', content: figures }
}

/** Shows any account, for operators. */
export function accountPage(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const path = `admin/accounts/${encodeURIComponent(id)}`
  const mayChange = may(context.session, 'admin')
  const balance = h('div', {})
  const state = h('div', { class: 'stack' })
  const result = resultPlace()
  const show = (account: Account): void => {
    fill(balance, money(account))
    fill(state, stateOf(account), warningsNotice(account))
  }
  const stateOf = ({ status }: Account): Child => {
    const suspended = status === 'suspended'
    const action = suspended
      ? actionButton(result, { text: 'Activate', act: () => save({ status: 'active' }) })
      : askButton(result, {
          text: 'Suspend',
          title: `Suspend ${id}?`,
          says: 'All its keys are refused within 5 s. Its calls, money and keys stay as they are.',
          submit: 'Suspend',
          danger: true,
          done: 'Saved.',
          act: () => save({ status: 'suspended' }),
        })
    return h(
      'div',
      { class: 'buttons' },
      suspended ? badge('bad', 'suspended: its keys are refused') : badge('good', 'active'),
      mayChange && action,
    )
  }
  const save = async (changed: object) => {
    show(await context.api.send<Account>('PATCH', path, changed))
    announce('Saved.')
    return notice('good', h('p', {}, 'Saved. The change takes effect within 5 s.'))
  }
  const figures = loaded('the account', async () => {
    const account = await context.api.get<Account>(path, {}, context.signal)
    show(account)
    return [
      balance,
      state,
      result,
      section(
        'Settings',
        mayChange
          ? [h('p', { class: 'muted' }, 'Empty fields are not restricted.'), accountForm(account, save)]
          : accountFacts(account),
      ),
      section('Keys', accountKeys(context, id)),
      may(context.session, 'finance') && [
        section('Deposit', depositForm(context, id, show)),
        section('Adjustment', adjustmentForm(context, id, show)),
      ],
      section('Usage', usagePanel(context, { account: id }, ['model', 'key'])),
      section('Leases', leaseTable(context, id)),
    ]
  })
  return {
    title: id,
    actions: [
      h('a', { class: 'button', href: linkWith('calls', { account: id }) }, 'Calls'),
      h('a', { class: 'button', href: linkWith('keys', { account: id }) }, 'Keys'),
      h('a', { class: 'button', href: linkWith('budgets', { account: id }) }, 'Budgets'),
      h('a', { class: 'button', href: linkWith('changes', { subject: id }) }, 'Audit log'),
    ],
    content: figures,
  }
}

function accountKeys(context: ViewContext, account: string): Child {
  const all = h('a', { href: linkWith('keys', { account }) }, 'Add or change keys')
  const columns = keyColumns(context).filter(({ name }) => name !== 'Account')
  return [
    listing<Key>(context, { what: 'keys', path: 'admin/keys', of: { account }, columns }),
    may(context.session, 'admin') && h('p', { class: 'small' }, all),
  ]
}

function money({ balance, leased, available, spent, deposited, prepaid }: Account): HTMLElement {
  return tiles([
    ['Balance', usd(balance), prepaid ? 'deposited − spent' : 'postpaid: never refused'],
    ['Leased', usd(leased), 'reserved by gateway processes'],
    ['Available', usd(available), 'balance − leased'],
    ['Spent', usd(spent)],
    ['Deposited', usd(deposited)],
  ])
}
