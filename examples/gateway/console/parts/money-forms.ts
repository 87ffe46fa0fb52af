import type { Account } from '../accounts.ts'
import { h } from '../element.ts'
import { isAmount, usd } from '../format.ts'
import type { ViewContext } from '../view.ts'
import { announce } from './announcer.ts'
import { confirmed } from './dialog.ts'
import { facts } from './facts.ts'
import { type Field, field, form } from './form.ts'
import { notice } from './notice.ts'

const REFERENCE: Field = {
  name: 'reference',
  label: 'Reference',
  hint: 'Such as the number of an invoice. A reference counts once.',
  attributes: { required: true },
}

/** A movement of money: its path below the account, its words, and its fields beside the amount. */
interface Movement {
  readonly path: 'deposits' | 'adjustments'
  readonly name: string
  readonly question: string
  readonly placeholder: string
  readonly fields: readonly Field[]
  readonly hint?: string
}

const DEPOSIT: Movement = {
  path: 'deposits',
  name: 'Deposit',
  question: 'Make this deposit?',
  placeholder: '25.00',
  fields: [REFERENCE],
}

const ADJUSTMENT: Movement = {
  path: 'adjustments',
  name: 'Adjust',
  question: 'Make this adjustment?',
  placeholder: '-12.50',
  hint: 'A negative amount reduces the balance.',
  fields: [REFERENCE, { name: 'reason', label: 'Reason', attributes: { required: true } }],
}

/** Creates the form of a deposit. It asks before it records the money. */
export function depositForm(context: ViewContext, account: string, done: (account: Account) => void) {
  return movementForm(context, account, DEPOSIT, done)
}

/** Creates the form of an adjustment: a refund, a correction. It asks as well. */
export function adjustmentForm(context: ViewContext, account: string, done: (account: Account) => void) {
  return movementForm(context, account, ADJUSTMENT, done)
}

function movementForm(
  { api }: ViewContext,
  account: string,
  { path, name, question, placeholder, hint, fields }: Movement,
  done: (account: Account) => void,
): HTMLElement {
  const url = `admin/accounts/${encodeURIComponent(account)}`
  return form({
    label: name,
    submit: `${name} …`,
    fields: [
      field({
        name: 'amount',
        label: 'Amount in US dollars',
        ...(hint !== undefined && { hint }),
        attributes: { inputmode: 'decimal', placeholder, size: 12, required: true },
      }),
      fields.map(field),
    ],
    async act(filled) {
      const { amount = '' } = filled
      if (!isAmount(amount)) return notice('bad', 'Enter an amount such as 12.50.')
      const repeated = [
        ['Account', account],
        ['Amount', h('strong', {}, usd(amount))],
        ...fields.map((one) => [one.label, filled[one.name] ?? ''] as const),
      ] as const
      if (!(await confirmed(question, facts(repeated), name, false))) return null
      await api.send('POST', `${url}/${path}`, filled)
      done(await api.get<Account>(url))
      announce('Saved.')
      return notice('good', h('p', {}, `${usd(amount)} are recorded as ${filled.reference}.`))
    },
  })
}
