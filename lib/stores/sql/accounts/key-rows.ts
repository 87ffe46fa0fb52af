import { type Expression, sql } from 'kysely'
import type { WalletId } from '../../../ledger/index.ts'
import type { Key, KeySettings } from '../../../management/index.ts'
import { type Cell, fromTags, toBigint, toJson, toList, toNumber, toTags } from '../driver/columns.ts'
import type { Database } from '../driver/tables.ts'

type Row = Awaited<ReturnType<ReturnType<typeof keysWithWallets>['executeTakeFirstOrThrow']>>

export function keysWithWallets(db: Database) {
  return db
    .selectFrom('keys')
    .leftJoin('wallets', (join) => join.on('wallets.id', '=', walletOf(sql.ref('keys.id'))))
    .select([
      'keys.id',
      'keys.account',
      'keys.enabled',
      'keys.expires_at',
      'keys.allow_ips',
      'keys.allow_models',
      'keys.rpm',
      'keys.tpm',
      'keys.created_at',
      'keys.name',
      'keys.note',
      'keys.tags',
      'keys.secret_hash',
      'keys.previous_until',
      'keys.last_used_at',
      'wallets.limited',
      'wallets.funds',
    ])
}

function walletOf(id: Expression<unknown>): Expression<WalletId> {
  return sql<WalletId>`'key:' || ${id}`
}

export function toKey(row: Row): Key {
  return {
    id: row.id,
    account: row.account,
    name: row.name,
    note: row.note,
    tags: toTags(row.tags),
    enabled: row.enabled !== 0,
    expiresAt: toNumber(row.expires_at),
    quota: row.limited === 1 ? row.funds : null,
    allowIps: toList(row.allow_ips),
    allowModels: toList(row.allow_models),
    limits: { rpm: toNumber(row.rpm), tpm: toNumber(row.tpm) },
    createdAt: Number(row.created_at),
    lastUsedAt: toNumber(row.last_used_at),
    previousUntil: toNumber(row.previous_until),
  }
}

export function toColumns({
  name,
  note,
  tags,
  enabled,
  expiresAt,
  allowIps,
  allowModels,
  limits,
}: KeySettings) {
  return {
    name,
    note,
    tags: fromTags(tags),
    enabled: enabled ? 1 : 0,
    expires_at: toBigint(expiresAt),
    allow_ips: toJson(allowIps),
    allow_models: toJson(allowModels),
    rpm: toBigint(limits.rpm),
    tpm: toBigint(limits.tpm),
  }
}

/** The columns of a new key. */
export const KEY_COLUMNS = {
  id: 'text',
  account: 'text',
  secret_hash: 'text',
  name: 'text',
  note: 'text',
  tags: 'text',
  enabled: 'bigint',
  expires_at: 'bigint',
  allow_ips: 'text',
  allow_models: 'text',
  rpm: 'bigint',
  tpm: 'bigint',
  created_at: 'bigint',
} as const

export function cellsOfKey(
  id: string,
  settings: KeySettings & { readonly account: string },
  secretHash: string,
  createdAt: number,
): Cell[] {
  const { account } = settings
  const row = { id, account, secret_hash: secretHash, ...toColumns(settings), created_at: createdAt }
  return (Object.keys(KEY_COLUMNS) as (keyof typeof KEY_COLUMNS)[]).map((name) => row[name])
}
