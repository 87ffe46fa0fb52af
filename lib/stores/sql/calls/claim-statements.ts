import { sql } from 'kysely'
import { PINNED_UNTIL } from '../../../middleware/idempotency/idempotency-store.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import type { RecordRow } from './claim-records.ts'

/*
 * The records of Idempotency-Keys, many in a statement. What somebody else has locked is left out, so that it holds up
 * nobody; the others are locked in the order of their ids. Rows that are read without a lock are as they were when the statement began.
 */

/** A record as its claim found it; `owner` is null for none. */
export interface TakenRow extends Omit<RecordRow, 'owner'> {
  readonly id: string
  readonly taken: boolean
  /** Whether somebody else had locked it. */
  readonly locked: boolean
  readonly owner: string | null
}

/** The given records, without those that somebody else has locked. However many rows Postgres expects in the table, it takes them from its index. */
const recordsOf = (condition = 'true') => `select * from idempotency
  where id = any (array(select id from given)) and ${condition} order by id for update skip locked`

/** One of a few rows that a step before has locked. */
const isOneOf = (step: string) => `found.id = any (array(select id from ${step}))`

/** Takes the records that are free, each id once, and returns those that stand. For Postgres. */
export const TAKE = RowStatement.steps<TakenRow>(
  { id: 'text', owner: 'text', fingerprint: 'text', until: 'bigint', now: 'bigint' },
  {
    free: recordsOf(),
    due: `select given.* from given join free on free.id = given.id
        where free.expires_at <= given.now or (free.owner = given.owner and free.state = 'running')`,
    renewed: `update idempotency as found set owner = due.owner, fingerprint = due.fingerprint, state = 'running',
          expires_at = due.until, answer = null
        from due where found.id = due.id and ${isOneOf('due')} returning found.id`,
    opened: `insert into idempotency (id, owner, fingerprint, state, expires_at)
        select id, owner, fingerprint, 'running', until from given
        where (select 1 from idempotency as found where found.id = given.id) is null
        order by given.id collate "C" on conflict (id) do nothing returning id`,
  },
  `select given.id, renewed.id is not null or opened.id is not null as taken, free.id is null as locked,
        coalesce(free.owner, seen.owner) as owner, coalesce(free.fingerprint, seen.fingerprint) as fingerprint,
        coalesce(free.state, seen.state) as state, coalesce(free.expires_at, seen.expires_at) as expires_at,
        case when free.id is null then seen.answer else free.answer end as answer
      from given left join renewed on renewed.id = given.id left join opened on opened.id = given.id
        left join free on free.id = given.id
        left join lateral (select * from idempotency where id = given.id offset 0) as seen on free.id is null`,
)

/** Renews claims. Returns those that stand, and whether they are renewed: not if somebody else has locked them. */
export const RENEW = RowStatement.steps<{ id: string; owner: string; renewed: boolean | number }>(
  { id: 'text', owner: 'text', until: 'bigint' },
  {
    free: recordsOf("state = 'running'"),
    renewed: `update idempotency as found set expires_at = given.until
      from given join free on free.id = given.id and free.owner = given.owner
      where found.id = given.id and ${isOneOf('free')} and found.expires_at <> ${PINNED_UNTIL}`,
  },
  `select seen.id, seen.owner, free.id is not null as renewed
    from (select * from idempotency where id = any (array(select id from given)) offset 0) as seen
      join given on given.id = seen.id and given.owner = seen.owner
      left join free on free.id = given.id and free.owner = given.owner
    where seen.state = 'running'`,
  `update idempotency set expires_at = case expires_at when ${PINNED_UNTIL} then expires_at else ?3 end
    where id = ?1 and owner = ?2 and state = 'running' returning id, owner, 1 as renewed`,
)

/** Completes claims, and returns those. For Postgres. */
export const COMPLETE = RowStatement.steps<{ id: string; owner: string }>(
  { id: 'text', owner: 'text', keep_until: 'bigint', answer: 'text' },
  { free: recordsOf() },
  `update idempotency as found
    set state = 'completed', expires_at = given.keep_until, answer = given.answer
    from given join free on free.id = given.id and free.owner = given.owner
    where found.id = given.id and ${isOneOf('free')} returning found.id, found.owner`,
)

/** Frees the keys of claims, and returns those. For Postgres. */
export const RELEASE = RowStatement.steps<{ id: string; owner: string }>(
  { id: 'text', owner: 'text' },
  { free: recordsOf(`state = 'running' and expires_at <> ${PINNED_UNTIL}`) },
  `delete from idempotency as found using given join free on free.id = given.id and free.owner = given.owner
    where found.id = given.id and ${isOneOf('free')} returning found.id, found.owner`,
)

/**
 * Returns the claim of one record as a single statement, so that only one of several concurrent claims succeeds. Parameters: id,
 * owner, fingerprint, state, end of the lease, now.
 */
export function takeQuery(db: Database) {
  return db
    .insertInto('idempotency')
    .values({ id: '', owner: '', fingerprint: '', state: 'running', expires_at: 0n })
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet(({ ref }) => ({
          owner: ref('excluded.owner'),
          fingerprint: ref('excluded.fingerprint'),
          state: ref('excluded.state'),
          expires_at: ref('excluded.expires_at'),
          // A new record has none.
          answer: ref('excluded.answer'),
        }))
        .where(({ and, eb, or, ref }) =>
          or([
            eb('idempotency.expires_at', '<=', 0n),
            and([
              eb('idempotency.owner', '=', ref('excluded.owner')),
              eb('idempotency.state', '=', ref('excluded.state')),
            ]),
          ]),
        ),
    )
    .returning('id')
}

/** What {@link takeOrFindQuery} returns; `taken` is null for a record that stands. */
export type TakenOne = Omit<TakenRow, 'id' | 'taken' | 'locked'> & { readonly taken: string | null }

/** {@link takeQuery} for Postgres, which returns the record that stands, too. The last parameter is the id once more. */
export function takeOrFindQuery(db: Database) {
  return sql<TakenOne>`with taken as (${takeQuery(db)})
    select taken.id as taken, owner, fingerprint, state, expires_at, answer from (select 1) as one
    left join taken on true left join idempotency as found on found.id = ${''}`
}
