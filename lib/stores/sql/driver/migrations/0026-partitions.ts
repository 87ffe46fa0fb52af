import { type Kysely, sql } from 'kysely'
import { firstIdOf } from '../id-times.ts'
import { isPostgres } from '../is-postgres.ts'

interface Table {
  readonly name: string
  readonly column: string
  /** The name of the primary key, and its columns. */
  readonly key: readonly [name: string, columns: string]
  readonly indexes?: Readonly<Record<string, string>>
}

/** In the order in which a settlement writes them, so that the locks never wait for each other in a circle. */
const TABLES: readonly Table[] = [
  { name: 'charges', column: 'request_id', key: ['charges_pkey', 'request_id'] },
  {
    name: 'calls',
    column: 'id',
    key: ['calls_pkey', 'id'],
    indexes: {
      calls_by_account: '(account, id)',
      calls_by_model: '(account, model, id)',
      calls_by_status: '(account, status, id)',
      calls_by_error: '(account, error_code, id) where error_code is not null',
    },
  },
  { name: 'call_labels', column: 'id', key: ['call_labels_id', 'label, id'] },
  { name: 'answers', column: 'id', key: ['answers_id', 'id, part'] },
]

const first = ({ name }: Table) => `${name}_first`
const rest = ({ name }: Table) => `${name}_default`

/** Makes the table as it is the first partition of a new one, and an empty table the one for what is in no other. */
export async function up(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  await lock(db)
  for (const table of TABLES) {
    const { name, column, key, indexes = {} } = table
    const [whole, old, other] = [sql.table(name), sql.table(first(table)), sql.table(rest(table))]
    const { bound, isChecked } = await boundOf(db, table)
    await rename(db, table, name, first(table))
    await sql`create table ${whole} (like ${old} including storage) partition by range (${sql.ref(column)})`.execute(
      db,
    )
    await sql`alter table ${whole} add constraint ${sql.ref(key[0])} primary key (${sql.raw(key[1])})`.execute(
      db,
    )
    for (const [index, of] of Object.entries(indexes))
      await sql`create index ${sql.ref(index)} on ${whole} ${sql.raw(of)}`.execute(db)
    await sql`create table ${other} (like ${whole} including all)`.execute(db)
    if (!isChecked)
      await sql`with moved as (delete from ${old} where ${sql.ref(column)} >= ${bound} returning *)
        insert into ${other} select * from moved`.execute(db)
    await sql`alter table ${whole} attach partition ${old}
      for values from (minvalue) to (${sql.lit(bound)})`.execute(db)
    await sql`alter table ${whole} attach partition ${other} default`.execute(db)
    await sql`alter table ${old} drop constraint if exists ${sql.ref(`${name}_until`)}`.execute(db)
  }
}

async function lock(db: Kysely<unknown>): Promise<void> {
  const names = sql.join(TABLES.map(({ name }) => sql.table(name)))
  await sql`lock table ${names} in access exclusive mode`.execute(db)
}

/** Returns where the first partition ends: as its constraint says, or else with the period; for an empty table, where that begins. */
async function boundOf(db: Kysely<unknown>, { name }: Table): Promise<{ bound: string; isChecked: boolean }> {
  const { rows } = await sql<{ bound: string | null; some: boolean }>`
    select (select substring(pg_get_constraintdef(oid) from '''(req_[0-9a-z]+)''') from pg_constraint
        where conrelid = ${name}::regclass and conname = ${`${name}_until`} and convalidated) as bound,
      exists (select 1 from ${sql.table(name)}) as some`.execute(db)
  const [{ bound = null, some = false } = {}] = rows
  if (bound !== null) return { bound, isChecked: true }
  const [start, end] = name === 'charges' ? monthOf(new Date()) : weekOf(Date.now())
  return { bound: firstIdOf(some ? end : start), isChecked: false }
}

function monthOf(date: Date): [start: number, end: number] {
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return [Date.UTC(year, month), Date.UTC(year, month + 1)]
}

const WEEK_MS = 7 * 86_400_000
/** A Monday. */
const FIRST_WEEK_MS = 4 * 86_400_000

function weekOf(time: number): [start: number, end: number] {
  const start = Math.floor((time - FIRST_WEEK_MS) / WEEK_MS) * WEEK_MS + FIRST_WEEK_MS
  return [start, start + WEEK_MS]
}

/** Renames a table, and its indexes after it. */
async function rename(db: Kysely<unknown>, table: Table, from: string, to: string): Promise<void> {
  const indexes = [table.key[0], ...Object.keys(table.indexes ?? {})]
  await sql`alter table ${sql.table(from)} rename to ${sql.ref(to)}`.execute(db)
  for (const index of indexes) {
    const [own, of] = from === table.name ? [index, firstOf(index)] : [firstOf(index), index]
    await sql`alter index ${sql.table(own)} rename to ${sql.ref(of)}`.execute(db)
  }
}

const firstOf = (index: string) => `${index}_first`

/** Puts all rows into the first partition, which is the table again. */
export async function down(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  await lock(db)
  for (const table of TABLES) {
    const [whole, old] = [sql.table(table.name), sql.table(first(table))]
    await sql`alter table ${whole} detach partition ${old}`.execute(db)
    await sql`insert into ${old} select * from ${whole}`.execute(db)
    await sql`drop table ${whole}`.execute(db)
    await rename(db, table, first(table), table.name)
  }
}
