import { formatAmount } from '../../../core/catalog/index.ts'
import type { BudgetTerms } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import { budgetEvent, thresholdsOf } from '../../../management/budgets/budget-events.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writeTogether } from '../driver/write-together.ts'
import { eventRow, RECORD_EVENTS } from '../webhooks/event-rows.ts'

/*
 * Events of budgets that have spent a share of their amount. They are written when the wallet of a period is opened,
 * and recorded in the transaction that reaches their amount: once, however many processes charge, and even if the terms
 * change. The writer has locked the wallet.
 */

const NOTE = RowStatement.insert(
  'budget_notices',
  { id: 'text', wallet: 'text', amount: 'bigint', type: 'text', subject: 'text', data: 'text' },
  'on conflict (id) do nothing',
  { constants: { sent: 0 }, loose: true },
)

export const DROP_UNSENT = RowStatement.delete(
  'budget_notices',
  { wallet: 'text' },
  'found.wallet = given.wallet and found.sent = 0',
)

const REACHED =
  'found.sent = 0 and found.amount <= (select spent from wallets where wallets.id = found.wallet)'

/** Records the events of given wallets that have become due, the lower share as the earlier one. Comes behind the spending, and before {@link MARK_SENT}. */
export const TELL_REACHED = RowStatement.select(
  { wallet: 'text', at: 'bigint' },
  `insert into webhook_events (id, type, subject, at, data, addressed)
    select found.id, found.type, found.subject, given.at + (select count(*) from budget_notices as lower
      where lower.wallet = found.wallet and lower.amount < found.amount), found.data, 0
    from given join budget_notices as found on found.wallet = given.wallet where ${REACHED}
    on conflict (id) do nothing`,
)

export const MARK_SENT = RowStatement.update(
  'budget_notices',
  { wallet: 'text' },
  'sent = 1',
  `found.wallet = given.wallet and ${REACHED}`,
  { loose: true },
)

const MARK_REFUSED = RowStatement.update(
  'budget_notices',
  { id: 'text' },
  'sent = 1',
  'found.id = given.id and found.sent = 0',
)

/** Records that a budget has refused a call, unless it was recorded before that all is spent. */
export async function tellRefused(db: Database, wallet: WalletId, at: number): Promise<void> {
  const notice = await db
    .selectFrom('budget_notices')
    .innerJoin('wallets', 'wallets.id', 'budget_notices.wallet')
    .select(['budget_notices.id', 'subject', 'data', 'spent'])
    .where('wallet', '=', wallet)
    .where('type', '=', 'budget.exhausted')
    .where('sent', '=', 0)
    .executeTakeFirst()
  if (!notice) return
  const { id, subject, spent } = notice
  const data = { ...JSON.parse(notice.data), spent: formatAmount(spent) }
  const event = { id, type: 'budget.exhausted', subject, at, data } as const
  // Unless another process has recorded it meanwhile.
  await writeTogether(db, [
    { statement: RECORD_EVENTS, rows: [eventRow(event)] },
    { statement: MARK_REFUSED, rows: [[id]] },
  ])
}

/** Returns the writes of the events of wallets of periods, in place of those of earlier terms that were not recorded. */
export function noteWrites(
  wallets: readonly (readonly [wallet: WalletId, terms: BudgetTerms])[],
): RowWrite[] {
  const rows = wallets.flatMap(([wallet, terms]) =>
    thresholdsOf(terms).map((threshold) => {
      const { id, type, subject, data } = budgetEvent(wallet, terms, threshold, threshold.amount, 0)
      return [id, wallet, threshold.amount, type, subject, JSON.stringify(data)]
    }),
  )
  return [
    { statement: DROP_UNSENT, rows: wallets.map(([wallet]) => [wallet]) },
    { statement: NOTE, rows },
  ]
}
