import type { BudgetAnswer as Budget } from 'express-model-gateway/admin'
import { fill, h } from '../element.ts'
import { moment, usd } from '../format.ts'
import { resultPlace } from '../parts/action-button.ts'
import { collection } from '../parts/collection.ts'
import { facts } from '../parts/facts.ts'
import { ACCOUNT, filterForm, filtersIn } from '../parts/filters.ts'
import { choice, type Filled, field, namesIn, pairsText } from '../parts/form.ts'
import { recordLink } from '../parts/links.ts'
import { loaded } from '../parts/loaded.ts'
import { deletion, type RowAction, rowButtons } from '../parts/row-actions.ts'
import { shareBar } from '../parts/share-bar.ts'
import type { Column } from '../parts/table.ts'
import { linkTo, linkWith } from '../router.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const PERIODS = [
  ['month', 'month'],
  ['week', 'week'],
  ['day', 'day'],
  ['total', 'lifetime'],
] as const

const HARD = [
  ['true', 'refuse'],
  ['false', 'allow'],
] as const

const BUDGETS = 'admin/budgets'

/** Lists the budgets of all accounts, or of one, with what their periods have spent. */
export function budgetList(context: ViewContext): ViewContent {
  const filters = filtersIn(context, [ACCOUNT])
  const { actions, content } = collection<Budget>(context, {
    what: 'budgets',
    path: BUDGETS,
    query: filters,
    columns: columnsOf(context),
    one: 'budget',
    editable: may(context.session, 'finance'),
    nameOf,
    creation: {
      says: 'It counts spending from now on. Leave key, user and tag empty for the whole account.',
      fields: () => [
        field({ name: 'of', label: 'Account', attributes: { value: filters.account, required: true } }),
        field({ name: 'key', label: 'Key' }),
        field({ name: 'user', label: 'User' }),
        field({ name: 'tag', label: 'Tag', attributes: { placeholder: 'team=search' } }),
        choice({ name: 'period', label: 'Period' }, PERIODS, 'month'),
        field({ name: 'timezone', label: 'Time zone', attributes: { value: 'UTC', spellcheck: 'false' } }),
        termFields(),
      ],
      bodyOf: ({ of: account, key, user, tag, period, timezone, ...terms }) => ({
        scope: { account, ...(key && { key }), ...(user && { user }), ...(tag && { tag }) },
        period,
        timezone,
        ...termsIn(terms),
      }),
    },
    actions: [terms(context), deletion(context, BUDGETS, DELETION, nameOf)],
  })
  return { title: 'Budgets', actions, content: [filterForm(context, 'budgets', [ACCOUNT]), content] }
}

/** Shows a budget, with the usage that it counts. */
export function budgetPage(context: ViewContext): ViewContent {
  const { session, api, params, signal } = context
  const id = params.id ?? ''
  const path = `${BUDGETS}/${encodeURIComponent(id)}`
  const result = resultPlace()
  const place = h('div', { class: 'stack' })
  const read = async (): Promise<void> => show(await api.get<Budget>(path, {}, signal))
  const show = (budget: Budget): void => {
    const { account, key, user, tag } = budget.scope
    const edit = rowButtons(result, [terms(context)], budget, nameOf, () => void read())
    const remove = rowButtons(result, [deletion(context, BUDGETS, DELETION, nameOf)], budget, nameOf, () => {
      location.hash = linkTo('budgets')
    })
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(tag ?? '') ?? []
    const scope = { account, key: key ?? '', user: user ?? '', tag: tag ? pairsText({ [name]: value }) : '' }
    fill(
      place,
      facts([
        ['Account', recordLink(session, 'account', account)],
        ['Key', recordLink(session, 'key', key) ?? 'all'],
        ['User', recordLink(session, 'user', user) ?? 'all'],
        ['Tag', tag ?? 'all'],
        ['Calls', h('a', { href: linkWith('calls', scope) }, 'Calls that it counts')],
        ['Period', periodOf(budget)],
        ['When exhausted', whenExhausted(budget)],
        ['Alert at', sharesOf(budget)],
        ['Amount', usd(budget.amount)],
        ['Spent', usd(budget.spent)],
        ['Left', usd(budget.left)],
        ['Used', usedBar(budget)],
        ['Resets', budget.resets_at && moment(budget.resets_at)],
      ]),
      may(session, 'finance') && h('div', { class: 'buttons' }, edit, remove),
    )
  }
  const content = loaded('the budget', async () => {
    await read()
    return [result, place]
  })
  return { title: 'Budget', content: [h('p', { class: 'mono subject' }, id), content] }
}

const DELETION = 'Its counters are deleted and it no longer limits calls. Charges are kept.'

function terms({ api }: ViewContext): RowAction<Budget> {
  return {
    text: 'Change',
    title: (budget) => `Change ${nameOf(budget)}`,
    says: 'Spending so far is kept. If the new amount is lower, the budget is exhausted at once. Takes effect within 5 s.',
    fields: termFields,
    submit: 'Save',
    done: 'Saved.',
    async act({ id }, filled) {
      await api.send('PATCH', `${BUDGETS}/${encodeURIComponent(id)}`, termsIn(filled))
      return null
    },
  }
}

function termFields(budget?: Budget) {
  return h(
    'div',
    { class: 'fields' },
    field({
      name: 'amount',
      label: 'Amount in US dollars',
      attributes: { inputmode: 'decimal', required: true, size: 10, value: budget?.amount },
    }),
    choice({ name: 'hard', label: 'When exhausted' }, HARD, String(budget?.hard ?? true)),
    field({
      name: 'soft',
      label: 'Alert at',
      hint: 'Shares of the amount, such as 0.5 0.8.',
      attributes: { value: budget?.soft.join(' ') },
    }),
  )
}

function termsIn({ amount, hard, soft }: Filled): object {
  return { amount, hard: hard === 'true', soft: (namesIn(soft) ?? []).map(Number) }
}

function nameOf({ scope }: Budget): string {
  return `the budget of ${subjectOf(scope)}`
}

function subjectOf({ account, key, user, tag }: Budget['scope']): string {
  const parts = [key && `key ${key}`, user && `user ${user}`, tag]
  return [account, ...parts.filter((part) => part)].join(', ')
}

function periodOf({ period, timezone }: Budget): string {
  return period === 'total' ? 'lifetime' : `${period}, ${timezone}`
}

function whenExhausted({ hard }: Budget): string {
  return hard ? 'refuses' : 'allows'
}

/** Shows the part of a budget that is spent; as a warning where it has reached a threshold, or all of it. */
function usedBar({ amount, spent, soft }: Budget): HTMLElement {
  const share = Number(amount) === 0 ? 1 : Number(spent) / Number(amount)
  const reached = soft.some((threshold) => share >= threshold)
  return shareBar(share, share >= 1 ? 'bad' : reached ? 'warn' : 'usual')
}

function sharesOf({ soft }: Budget): string {
  return soft.map((share) => `${Number((share * 100).toFixed(4))}\u00a0%`).join(', ')
}

function columnsOf({ session }: ViewContext): readonly Column<Budget>[] {
  return [
    {
      name: 'Scope',
      heads: true,
      cell: ({ id, scope }) => h('a', { href: linkTo('budgets', id) }, subjectOf(scope)),
    },
    { name: 'Account', cell: ({ scope }) => recordLink(session, 'account', scope.account) },
    { name: 'Period', cell: periodOf },
    { name: 'When exhausted', cell: whenExhausted },
    { name: 'Alert at', cell: sharesOf },
    { name: 'Amount', figures: true, cell: ({ amount }) => usd(amount) },
    { name: 'Spent', figures: true, cell: ({ spent }) => usd(spent) },
    { name: 'Used', cell: usedBar },
    { name: 'Left', figures: true, cell: ({ left }) => usd(left) },
    { name: 'Resets', cell: ({ resets_at: at }) => at && moment(at) },
  ]
}
