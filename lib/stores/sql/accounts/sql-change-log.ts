import type { ChangeLog, ChangeQuery, RecordedChange } from '../../../core/change-log/index.ts'
import { checkDatabase } from '../driver/database.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { AdminChangesTable, Database } from '../driver/tables.ts'

/**
 * A change log in a database. The stores of the admin API record the changes of operators in it.
 *
 * @example
 * const changes = new SqlChangeLog(await openDatabase('sqlite:.data/gateway.db', { readOnly: true }))
 */
export class SqlChangeLog implements ChangeLog {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlChangeLog', db)
    this.#db = db
  }

  async list({ subject, before, limit }: ChangeQuery): Promise<readonly RecordedChange[]> {
    let query = this.#db.selectFrom('admin_changes').selectAll()
    if (subject !== undefined) query = query.where('subject', '=', subject)
    if (before !== undefined) query = query.where('id', '<', before)
    const rows = await query.orderBy('id', 'desc').limit(limit).execute()
    return rows.map(toChange)
  }
}

const RECORD_CHANGES = RowStatement.insert(
  'admin_changes',
  { id: 'text', at: 'bigint', actor: 'text', action: 'text', subject: 'text', before: 'text', after: 'text' },
  '',
)

/** Returns the write of changes, for the transaction that makes them. */
export function changeWrite(...changes: readonly RecordedChange[]): RowWrite {
  const rows = changes.map(({ requestId, actor, at, action, subject, before, after }) => {
    const described = [before && JSON.stringify(before), JSON.stringify(after)]
    return [requestId, at, actor, action, subject, ...described]
  })
  return { statement: RECORD_CHANGES, rows }
}

/** Records a change in the transaction that makes it. */
export async function recordChange(trx: Database, change: RecordedChange): Promise<void> {
  const { statement, rows } = changeWrite(change)
  await statement.run(trx, rows)
}

function toChange({ id, at, before, after, ...rest }: AdminChangesTable): RecordedChange {
  return {
    ...rest,
    requestId: id,
    at: Number(at),
    before: before === null ? null : (JSON.parse(before) as object),
    after: JSON.parse(after) as object | null,
  }
}
