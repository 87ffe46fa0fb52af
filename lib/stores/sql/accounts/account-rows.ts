import { sql } from 'kysely'
import type { WalletId } from '../../../ledger/index.ts'
import type { Account, AccountSettings } from '../../../management/index.ts'
import { type Cell, toBigint, toJson, toList, toNumber } from '../driver/columns.ts'
import type { Database } from '../driver/tables.ts'

type Row = Awaited<ReturnType<ReturnType<typeof accountsWithWallets>['executeTakeFirstOrThrow']>>

export function accountsWithWallets(db: Database) {
  return db
    .selectFrom('accounts')
    .innerJoin('wallets', (join) => join.on('wallets.id', '=', sql<WalletId>`'account:' || accounts.id`))
    .select([
      'accounts.id',
      'accounts.name',
      'accounts.rpm',
      'accounts.tpm',
      'accounts.concurrency',
      'accounts.regions',
      'accounts.line_regions',
      'accounts.suspended',
      'accounts.created_at',
      'wallets.limited',
    ])
}

export function toAccount(row: Row): Account {
  return {
    id: row.id,
    name: row.name,
    prepaid: row.limited !== 0,
    limits: { rpm: toNumber(row.rpm), tpm: toNumber(row.tpm), concurrency: toNumber(row.concurrency) },
    regions: toList(row.regions),
    lineRegions: toList(row.line_regions),
    status: row.suspended === 0 ? 'active' : 'suspended',
    createdAt: Number(row.created_at),
  }
}

export function toColumns({ name, limits, regions, lineRegions, status }: AccountSettings) {
  return {
    name,
    rpm: toBigint(limits.rpm),
    tpm: toBigint(limits.tpm),
    concurrency: toBigint(limits.concurrency),
    regions: toJson(regions),
    line_regions: toJson(lineRegions),
    suspended: Number(status === 'suspended'),
  }
}

/** The columns of a new account. */
export const ACCOUNT_COLUMNS = {
  id: 'text',
  name: 'text',
  rpm: 'bigint',
  tpm: 'bigint',
  concurrency: 'bigint',
  regions: 'text',
  line_regions: 'text',
  suspended: 'bigint',
  created_at: 'bigint',
} as const

export function cellsOfAccount(id: string, settings: AccountSettings, createdAt: number): Cell[] {
  const row = { id, ...toColumns(settings), created_at: createdAt }
  return (Object.keys(ACCOUNT_COLUMNS) as (keyof typeof ACCOUNT_COLUMNS)[]).map((name) => row[name])
}
