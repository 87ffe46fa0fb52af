import type { Kysely } from 'kysely'
import { byteText } from '../byte-text.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  const text = byteText(db)
  await db.schema
    .createTable('holds')
    .addColumn('request_id', text, (column) => column.primaryKey())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('amount', 'bigint', (column) => column.notNull())
    .execute()

  await db.schema
    .createTable('video_tasks')
    .addColumn('id', text, (column) => column.primaryKey())
    .addColumn('request_id', text, (column) => column.notNull())
    .addColumn('account', text, (column) => column.notNull())
    .addColumn('key', text)
    .addColumn('model', text, (column) => column.notNull())
    .addColumn('protocol', text, (column) => column.notNull())
    .addColumn('line', text, (column) => column.notNull())
    .addColumn('upstream_id', text)
    .addColumn('state', text, (column) => column.notNull())
    .addColumn('hold', 'bigint', (column) => column.notNull())
    .addColumn('detail', text, (column) => column.notNull())
    .addColumn('claim_id', text)
    .addColumn('claim_owner', text)
    .addColumn('answer_by', 'bigint')
    .addColumn('poll_at', 'bigint')
    .addColumn('poll_owner', text)
    .addColumn('missing_since', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('finished_at', 'bigint')
    .execute()
  await db.schema.createIndex('video_tasks_by_account').on('video_tasks').columns(['account', 'id']).execute()
  await db.schema.createIndex('video_tasks_by_state').on('video_tasks').columns(['state', 'id']).execute()
  // Ended tasks, which are almost all of them, are in none of these indexes.
  for (const [name, column] of [
    ['video_tasks_to_poll', 'poll_at'],
    ['video_tasks_unanswered', 'answer_by'],
  ] as const) {
    await db.schema
      .createIndex(name)
      .on('video_tasks')
      .columns([column])
      .where(column as never, 'is not', null)
      .execute()
  }
  await db.schema
    .createIndex('video_tasks_open')
    .on('video_tasks')
    .columns(['created_at'])
    .where('finished_at' as never, 'is', null)
    .execute()
  await db.schema
    .createIndex('video_tasks_finished')
    .on('video_tasks')
    .columns(['finished_at'])
    .where('finished_at' as never, 'is not', null)
    .execute()
}
