import { BrokenRecord } from '../../../core/store-guard/index.ts'
import type { IdempotencyRecord } from '../../../middleware/idempotency/index.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import type { Database } from '../driver/tables.ts'

export async function findRecord(db: Database, id: string): Promise<IdempotencyRecord | undefined> {
  const row = await db
    .selectFrom('idempotency')
    .select(['owner', 'fingerprint', 'state', 'expires_at', 'answer'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row && toRecord(row)
}

/** @throws {BrokenRecord} for a record that somebody else has locked; else the error itself. */
export function busyIfLocked(error: unknown): never {
  if (isLocked(error)) throw new BrokenRecord('the record is locked by somebody else', { cause: error })
  throw error
}

/** A row as both databases return it. */
export interface RecordRow {
  readonly owner: string
  readonly fingerprint: string
  readonly state: IdempotencyRecord['state']
  readonly expires_at: bigint
  readonly answer: string | null
}

export function toRecord({ owner, fingerprint, state, expires_at, answer }: RecordRow): IdempotencyRecord {
  return { owner, fingerprint, state, expiresAt: Number(expires_at), ...(answer !== null && { answer }) }
}
