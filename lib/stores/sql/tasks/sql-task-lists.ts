import { sql } from 'kysely'
import type { TaskPage, TaskQuery, VideoTask } from '../../../endpoints/video/index.ts'
import type { Database } from '../driver/tables.ts'
import { toTask } from './sql-task-rows.ts'

export async function listTasks(db: Database, query: TaskQuery, page: TaskPage): Promise<VideoTask[]> {
  const { order, limit, after, skip = 0 } = page
  const newest = order === 'newest'
  let tasks = tasksOf(db, query)
    .selectAll()
    .orderBy('id', newest ? 'desc' : 'asc')
    .limit(limit)
  if (after !== undefined) tasks = tasks.where('id', newest ? '<' : '>', after)
  if (skip > 0) tasks = tasks.offset(skip)
  return (await tasks.execute()).map(toTask)
}

export async function countTasks(db: Database, query: TaskQuery): Promise<number> {
  const { count } = await tasksOf(db, query)
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

function tasksOf(db: Database, { account, states, model, protocol, ids, taken }: TaskQuery) {
  let tasks = db.selectFrom('video_tasks')
  if (account !== undefined) tasks = tasks.where('account', '=', account)
  if (states?.length) tasks = tasks.where('state', 'in', states)
  if (model !== undefined) tasks = tasks.where('model', '=', model)
  if (protocol !== undefined) tasks = tasks.where('protocol', '=', protocol)
  if (ids?.length) tasks = tasks.where('id', 'in', ids)
  // Postgres has no empty list.
  if (states?.length === 0 || ids?.length === 0) return db.selectFrom('video_tasks').where(sql.lit(false))
  if (taken === true) tasks = tasks.where('upstream_id', 'is not', null)
  return tasks
}
