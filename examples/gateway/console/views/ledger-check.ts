import type { LedgerCheckAnswer as LedgerCheck } from 'express-model-gateway/admin'
import { h } from '../element.ts'
import { count, usd } from '../format.ts'
import { section, tiles } from '../parts/facts.ts'
import { leaseTable } from '../parts/lease-table.ts'
import { loaded } from '../parts/loaded.ts'
import { notice } from '../parts/notice.ts'
import { badge } from '../parts/status.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Shows the check of the ledger and the open leases. */
export function ledgerCheck(context: ViewContext): ViewContent {
  const check = loaded('the check', async () => {
    const found = await context.api.get<LedgerCheck>('admin/ledger/check', {}, context.signal)
    const { violations, restored } = found
    return [
      tiles([
        [
          'The ledger',
          violations.length === 0
            ? badge('good', 'is consistent')
            : badge('bad', `${violations.length} violations`),
        ],
        ['Accounts', count(found.accounts)],
        ['Charges', count(found.charges)],
        ['Deposited', usd(found.deposited)],
        ['Spent', usd(found.spent)],
        ['Leased', usd(found.leased)],
      ]),
      violations.length > 0 &&
        notice(
          'bad',
          h(
            'ul',
            {},
            violations.map((text) => h('li', {}, text)),
          ),
        ),
      restored !== undefined &&
        notice(
          'warn',
          `The database was restored from a backup at ${restored.at}. ` +
            (restored.newest_call_at === null
              ? 'The backup contains no calls. '
              : `Its newest call began at ${restored.newest_call_at}. `) +
            `${count(restored.charges_written_again)} charges were written again. Compare the providers’ bills for the time in between.`,
        ),
    ]
  })
  return {
    title: 'Ledger',
    actions: h('button', { type: 'button', click: () => context.reload() }, 'Check again'),
    content: [
      h(
        'p',
        { class: 'muted' },
        'The check recomputes the ledger from all its rows. Do not run it every second.',
      ),
      check,
      section('Open leases', leaseTable(context)),
    ],
  }
}
