import type { AuditedShare } from '../../../ledger/audit.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { Database } from '../driver/tables.ts'

/** The most rows of one statement. */
const PAGE_ROWS = 2000

/** Yields the shares that this region has of others' wallets, and those that others have of its own. */
export async function* auditedShares(trx: Database): AsyncIterable<readonly AuditedShare[]> {
  let after = '' as WalletId
  for (;;) {
    const rows = await trx
      .selectFrom('shares')
      .select(['wallet', 'received', 'returned'])
      .where('wallet', '>', after)
      .orderBy('wallet')
      .limit(PAGE_ROWS)
      .execute()
    yield rows.map(({ wallet, received, returned }) => ({
      wallet,
      funds: received - returned,
      spent: 0n,
      held: 0n,
    }))
    if (rows.length < PAGE_ROWS) break
    after = rows.at(-1)?.wallet ?? after
  }
  let [wallet, region] = ['' as WalletId, '']
  for (;;) {
    const rows = await trx
      .selectFrom('lent_shares')
      .select(['wallet', 'region', 'granted', 'returned', 'spent'])
      .where(({ eb, and, or }) =>
        or([eb('wallet', '>', wallet), and([eb('wallet', '=', wallet), eb('region', '>', region)])]),
      )
      .orderBy('wallet')
      .orderBy('region')
      .limit(PAGE_ROWS)
      .execute()
    yield rows.map(({ wallet, granted, returned, spent }) => {
      const left = granted - returned - spent
      return { wallet, funds: 0n, spent, held: left > 0n ? left : 0n }
    })
    if (rows.length < PAGE_ROWS) break
    const last = rows.at(-1)
    if (last) [wallet, region] = [last.wallet, last.region]
  }
}
