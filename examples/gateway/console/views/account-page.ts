import type { Account } from '../accounts.ts'
import { type Child, fill, h } from '../element.ts'
import { count, moment, usd } from '../format.ts'
import { activityPlots } from '../parts/activity-plots.ts'
import { printReadyMessage } from '../parts/announcer.ts'
import { facts, section, tiles } from '../parts/facts.ts'
import { field, form } from '../parts/form.ts'
import { leaseTable } from '../parts/lease-table.ts'
import { loaded } from '../parts/loaded.ts'
import { notice } from '../parts/notice.ts'
import { linkWith } from '../router.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Shows the account of the session's key. */
export function ownAccountPage(context: ViewContext): ViewContent {
  const figures = loaded('the account', async () => {
    const account = await context.api.get<Account>('v1/account', {}, context.signal)
    return [
      h('p', { class: 'mono subject' }, account.id),
      money(account),
      section('Limits', settings(account)),
    ]
  })
  return { title: 'Account', content: [figures, section('Activity', activityPlots(context, undefined))] }
}

/** Shows any account, for operators. */
export function accountPage(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const path = `admin/accounts/${encodeURIComponent(id)}`
  const place = h('div', { class: 'stack' })
  const figures = loaded('the account', async () => {
    const show = (account: Account): void =>
      fill(place, money(account), section('Settings', settings(account)))
    show(await context.api.get<Account>(path, {}, context.signal))
    return [place, section('Deposit', depositForm(context, path, show))]
  })
  return {
    title: id,
    actions: [
      h('a', { class: 'button', href: linkWith('calls', { account: id }) }, 'Calls'),
      h('a', { class: 'button', href: linkWith('keys', { account: id }) }, 'Keys'),
      h('a', { class: 'button', href: linkWith('changes', { subject: id }) }, 'Changes'),
    ],
    content: [
      figures,
      section('Activity', activityPlots(context, id)),
      section('Leases', leaseTable(context, id)),
    ],
  }
}

function money({ balance, leased, available, spent, deposited, prepaid }: Account): HTMLElement {
  return tiles([
    ['Balance', usd(balance), prepaid ? 'deposited − spent' : 'postpaid: never refused'],
    ['Leased', usd(leased), 'set aside by processes'],
    ['Available', usd(available), 'balance − leased'],
    ['Spent', usd(spent)],
    ['Deposited', usd(deposited)],
  ])
}

function settings(account: Account): HTMLElement {
  const { limits, regions, line_regions: lineRegions } = account
  const rows: [string, Child][] = [
    ['Requests a minute', limitText(limits.rpm)],
    ['Input tokens a minute', limitText(limits.tpm)],
    ['Calls at a time', limitText(limits.concurrency ?? null)],
  ]
  if (regions !== undefined) rows.push(['Regions', regions?.join(', ') ?? 'all'])
  if (lineRegions !== undefined) rows.push(['Regions of its lines', lineRegions?.join(', ') ?? 'all'])
  if (account.name !== undefined) rows.unshift(['Name', account.name])
  if (account.created_at !== undefined) rows.push(['Created', moment(account.created_at)])
  return facts(rows)
}

function limitText(value: number | null): string {
  return value === null ? 'no limit' : count(value)
}

function depositForm({ api }: ViewContext, path: string, show: (account: Account) => void): HTMLElement {
  return form({
    label: 'Deposit',
    submit: 'Deposit',
    fields: [
      field({
        name: 'amount',
        label: 'Amount in US dollars',
        attributes: { inputmode: 'decimal', placeholder: '25.00', size: 12 },
      }),
      field({
        name: 'reference',
        label: 'Reference',
        hint: 'Such as the number of an invoice. The same one twice is one deposit.',
      }),
    ],
    async act({ amount = '', reference = '' }) {
      await api.send('POST', `${path}/deposits`, { amount, reference })
      show(await api.get<Account>(path))
      printReadyMessage('Deposited.')
      return notice('good', h('p', {}, `${usd(amount)} stand in the books as ${reference}.`))
    },
  })
}
