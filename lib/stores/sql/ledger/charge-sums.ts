import type { AuditedCharges, AuditedVoid } from '../../../ledger/audit.ts'
import { halvedSum, joinedSum } from '../driver/halved-sum.ts'
import type { Database } from '../driver/tables.ts'
import { readWallets } from './charge-rows.ts'

/** The most rows of one statement, so that none takes long or blocks the event loop. */
export const PAGE_ROWS = 2000
/** The number of charges that one statement adds up. */
const PAGE_CHARGES = 20_000

/** Request ids from one on, before another. */
export interface IdRange {
  readonly from: string
  readonly to: string
}

/** Adds up charges by their payers, a page at a time. */
export async function* chargesOf(trx: Database, range?: IdRange): AsyncIterable<readonly AuditedCharges[]> {
  let after = ''
  for (;;) {
    const last = await lastOfPage(trx, after, range)
    if (last === null) return
    const sums = await trx
      .selectFrom('charges')
      .select(['account', 'key', 'budgets', ...halvedSum('amount')])
      .select(({ fn }) => fn.countAll<bigint>().as('count'))
      .where('request_id', '>', after)
      .$if(range !== undefined, (query) => query.where('request_id', '>=', range?.from ?? ''))
      .where('request_id', '<=', last)
      .groupBy(['account', 'key', 'budgets'])
      .execute()
    yield sums.map(({ account, key, budgets, count, ...halves }) => ({
      ...{ account, key, budgets: readWallets(budgets), count: Number(count) },
      amount: joinedSum(halves, 'amount'),
    }))
    after = last
  }
}

async function lastOfPage(trx: Database, after: string, range?: IdRange): Promise<string | null> {
  const page = trx
    .selectFrom('charges')
    .select('request_id')
    .where('request_id', '>', after)
    .$if(range !== undefined, (query) =>
      query.where('request_id', '>=', range?.from ?? '').where('request_id', '<', range?.to ?? ''),
    )
    .orderBy('request_id')
    .limit(PAGE_CHARGES)
  const { last } = await trx
    .selectFrom(page.as('page'))
    .select(({ fn }) => fn.max<string | null>('request_id').as('last'))
    .executeTakeFirstOrThrow()
  return last
}

/** Yields voids, each with its charge. */
export async function* voidsOf(trx: Database, range?: IdRange): AsyncIterable<readonly AuditedVoid[]> {
  const page = (after: string) =>
    trx
      .selectFrom('voids')
      .leftJoin('charges', 'charges.request_id', 'voids.request_id')
      .select(['voids.request_id as requestId', 'voids.account', 'voids.key', 'voids.amount'])
      .select(['charges.account as chargedAccount', 'charges.key as chargedKey', 'charges.amount as charged'])
      .select('charges.budgets as chargedBudgets')
      .where('voids.request_id', '>', after)
      .$if(range !== undefined, (query) =>
        query
          .where('voids.request_id', '>=', range?.from ?? '')
          .where('voids.request_id', '<', range?.to ?? ''),
      )
      .orderBy('voids.request_id')
      .limit(PAGE_ROWS)
      .execute()
  for await (const rows of pagesOf(page, ({ requestId }) => requestId)) {
    yield rows.map(({ chargedAccount, chargedKey, charged, chargedBudgets, ...undone }) => {
      const charge =
        chargedAccount === null || charged === null
          ? null
          : {
              account: chargedAccount,
              key: chargedKey,
              amount: charged,
              budgets: readWallets(chargedBudgets),
            }
      return { ...undone, charge }
    })
  }
}

/** Yields all rows of a table in pages of {@link PAGE_ROWS}. */
export async function* pagesOf<Row>(
  page: (after: string) => Promise<Row[]>,
  place: (row: Row) => string,
): AsyncGenerator<Row[]> {
  let after = ''
  for (;;) {
    const rows = await page(after)
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE_ROWS) return
    after = place(last)
  }
}
