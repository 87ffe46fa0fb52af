import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { CompiledQuery, sql } from 'kysely'
import { lineOf, newRequestId } from '../../../lib/core/call/index.ts'
import type { CallLogEntry, CallPage, CallQuery } from '../../../lib/middleware/call-log/index.ts'
import { labelRows } from '../../../lib/stores/sql/calls/call-labels.ts'
import { readEntry } from '../../../lib/stores/sql/calls/written-entry.ts'
import { type Database, openDatabase, SqlCallStore } from '../../../lib/stores/sql/index.ts'
import { POSTGRES, SQLITE } from '../../bench/scale/filled-databases.ts'
import { SEARCHES } from '../../bench/search/cases.ts'
import { callStatements, eachMs, FIRST_AT, LARGE_ACCOUNT, makeWeeks } from '../../bench/search/rows.ts'
import { postgresUrl } from '../../stores/sql/support/postgres-database.ts'
import { PATIENT, temporaryFolder } from '../../stores/sql/support/temporary-database.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

const CALLS = 12_000
const SPAN = { calls: CALLS, weeks: 6 }
/** For each call that is compared, so many rows of tables and indexes are read: some searches merge the newest of up to 19 labels. */
const MOST_EACH = 10
/** Of each search so many calls are compared. */
const COMPARED = 120

const ENGINES = [
  {
    name: 'SQLite',
    wording: SQLITE,
    skip: false as const,
    async open(after: (close: () => Promise<void>) => void) {
      const { url, remove } = await temporaryFolder()
      after(remove)
      return url
    },
    /** Steps of a plan that read what the page does not need. */
    async wasteOf(db: Database, { sql: text, parameters }: CompiledQuery) {
      const explain = CompiledQuery.raw(`explain query plan ${text}`, [...parameters])
      const { rows } = await db.executeQuery<{ detail: string }>(explain)
      return rows
        .map(({ detail }) => detail)
        .filter((step) => /\b(calls|call_labels|found|own)\b/.test(step))
        .filter((step) => !/^SEARCH \w+ (EXISTS )?USING .*\((label|account|id)[=>]\?/.test(step))
        .filter((step) => !/^SEARCH calls .*\(id[<>]\?/.test(step))
    },
  },
  {
    name: 'Postgres',
    wording: POSTGRES,
    skip: WITHOUT_POSTGRES,
    open: () => postgresUrl(),
    async wasteOf(db: Database, { sql: text, parameters }: CompiledQuery) {
      const explain = CompiledQuery.raw(`explain (analyze, format json) ${text}`, [...parameters])
      const { rows } = await db.executeQuery<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(explain)
      const read = rowsRead(rows[0]?.['QUERY PLAN'][0].Plan as PlanNode)
      const limits = Array.from(text.matchAll(/limit (\d+)/g), ([, limit]) => Number(limit))
      return read > MOST_EACH * Math.max(...limits) ? [`${read} rows`] : []
    },
  },
]

/** A step of a plan of Postgres, and what it has done. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Actual Loops': number
  readonly 'Actual Rows': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly PlanNode[]
}

/** How many rows of tables and indexes were read. */
function rowsRead(node: PlanNode): number {
  const { 'Actual Rows': rows, 'Rows Removed by Filter': removed = 0, Plans: plans = [] } = node
  const isTable = /^(?:Seq|Index|Index Only|Bitmap Heap) Scan$/.test(node['Node Type'])
  const own = isTable
    ? (rows + removed + (node['Rows Removed by Index Recheck'] ?? 0)) * node['Actual Loops']
    : 0
  return plans.reduce((sum, plan) => sum + rowsRead(plan), own)
}

for (const { name, wording, skip, open, wasteOf } of ENGINES) {
  describe(`searches through many calls in ${name}`, { skip }, () => {
    let db: Database
    let store: SqlCallStore
    /** Newest first. */
    let entries: CallLogEntry[] = []
    const asked: CompiledQuery[] = []
    let beforeEach = async () => {}
    const cleanUp = cleaningUp()

    before(async () => {
      db = await openDatabase(await open((close) => void cleanUp.after(close)), PATIENT)
      cleanUp.after(() => db.destroy())
      if (name === 'Postgres') await makeWeeks(db, SPAN.weeks)
      for (const [, statement] of callStatements(SPAN, wording)) await sql.raw(statement).execute(db)
      if (name === 'Postgres') await sql`analyze`.execute(db)
      const { rows } = await sql<{ entry: string }>`select entry from calls order by id desc`.execute(db)
      entries = rows.map(({ entry }) => readEntry(entry))
      const executor = db.getExecutor()
      const execute = executor.executeQuery.bind(executor)
      executor.executeQuery = (async (query: CompiledQuery, ...more: []) => {
        asked.push(query)
        await beforeEach()
        return execute(query, ...more)
      }) as typeof executor.executeQuery
      store = new SqlCallStore(db)
    })

    it('are of calls with the labels that the gateway writes', async () => {
      const some = entries.filter((_, i) => i % 100 === 7)
      const { rows } = await sql<{ label: string; id: string }>`
        select label, id from call_labels where id in (${sql.join(some.map(({ id }) => id))})`.execute(db)
      const sorted = (pairs: unknown[][]) => pairs.map((pair) => pair.join(' ')).sort()
      assert.deepEqual(sorted(rows.map(({ label, id }) => [label, id])), sorted(some.flatMap(labelRows)))
    })

    it('find what a filter over all of them finds, by one filter and by two, page by page', async () => {
      const queries = SEARCHES.map(({ query }) => query())
      const pairs = queries.map((query, i) => ({ ...query, ...queries[(i * 29 + 7) % queries.length] }))
      for (const [i, query] of [...queries, ...pairs].entries()) {
        const at = (share: number) => Date.parse(entries[Math.floor(share * CALLS)]?.created_at ?? '')
        const times = i % 3 === 0 ? {} : i % 3 === 1 ? { to: at(0.31) } : { from: at(0.83), to: at(0.12) }
        const whole = { ...query, ...times, limit: 50 }
        const expected = entries.filter((entry) => matches(entry, whole)).slice(0, COMPARED)
        const found: CallLogEntry[] = []
        for (let page = 0, cursor: string | undefined; found.length < COMPARED; page++) {
          const { entries: more, next } = await store.list({ ...whole, before: cursor })
          found.push(...more)
          cursor = next ?? more.at(-1)?.id
          if (next === undefined && more.length < whole.limit) break
          assert.ok(page < 500, `${JSON.stringify(query)} does not end`)
        }
        const ids = (list: readonly CallLogEntry[]) => list.slice(0, COMPARED).map(({ id }) => id)
        assert.deepEqual(ids(found), ids(expected), JSON.stringify(whole))
      }
    })

    it('scan no table, whatever they search for', async () => {
      for (const { name: what, query } of SEARCHES) {
        asked.length = 0
        await store.list({ ...query(), limit: 50 })
        const statements = [...asked]
        assert.ok(statements.length <= 41, `${what}: ${statements.length} statements`)
        // The list of all calls is read from its newest end.
        const isOfAll = statements.every(({ sql: text }) => !/account|label/.test(text))
        for (const statement of isOfAll ? [] : statements)
          assert.deepEqual(await wasteOf(db, statement), [], `${what}: ${statement.sql}`)
      }
    })

    it('stop early, and say where, if none of very many calls fits a filter that has no list', async () => {
      for (const query of [{ statusClass: 1 }, { statusClass: 1, account: LARGE_ACCOUNT }]) {
        const first = await store.list({ ...query, limit: 50 })
        assert.deepEqual(first.entries, [])
        assert.ok(first.next !== undefined, 'the first page has looked at everything')
        for (let cursor: string | undefined = first.next; cursor !== undefined; ) {
          const page: CallPage = await store.list({ ...query, limit: 50, before: cursor })
          assert.deepEqual(page.entries, [])
          assert.ok(page.next === undefined || page.next < cursor)
          cursor = page.next
        }
      }
    })

    /** Returns the calls that a caller finds who pages to the end. */
    async function allOf(query: Partial<CallQuery>): Promise<{ found: string[]; pages: number }> {
      const found: string[] = []
      for (let pages = 1, cursor: string | undefined; ; pages++) {
        const page = await store.list({ limit: 20, ...query, before: cursor })
        found.push(...page.entries.map(({ id }) => id))
        cursor = page.next ?? (page.entries.length === 20 ? found.at(-1) : undefined)
        if (cursor === undefined) return { found, pages }
      }
    }

    it('give short pages where the database is slow, and each call once', async (t) => {
      t.after(() => {
        beforeEach = async () => {}
      })
      beforeEach = () => sleep(31)
      for (const [query, least] of [
        [{ tags: { team: 'team_1' }, minDurationMs: 5000 }, 3],
        [{ model: 'chat-large', line: 'asia' }, 9],
      ] as const) {
        const { found, pages } = await allOf(query)
        const expected = entries.filter((entry) => matches(entry, { ...query, limit: 1 })).map(({ id }) => id)
        assert.deepEqual(found, expected, JSON.stringify(query))
        assert.ok(pages >= least, `${pages} pages`)
      }
    })

    it('fill their page by one filter, however few calls fit', async () => {
      for (const query of [
        { model: 'chat-rare' },
        { status: 504 },
        { minDurationMs: 600_000 },
        { tags: { team: 'rare' } },
      ]) {
        const page = await store.list({ ...query, limit: 50 })
        assert.deepEqual([page.entries.length, page.next], [5, undefined], JSON.stringify(query))
      }
    })

    it('find each call once that was there, whatever is logged between their statements', async (t) => {
      t.after(() => {
        beforeEach = async () => {}
      })
      const like = entries.find((entry) =>
        matches(entry, { model: 'chat-large', minDurationMs: 5000, limit: 1 }),
      )
      const query = { model: like?.model as string, minDurationMs: 5000 }
      const there = entries.filter((entry) => matches(entry, { ...query, limit: 1 })).map(({ id }) => id)
      let isAppending = false
      beforeEach = async () => {
        if (isAppending) return
        isAppending = true
        const times = Array.from({ length: 20 }, () =>
          Math.floor(FIRST_AT + Math.random() * CALLS * eachMs(SPAN)),
        )
        await store.append(times.map((time) => ({ ...(like as CallLogEntry), id: newRequestId(time) })))
        isAppending = false
      }
      const { found } = await allOf(query)
      assert.deepEqual(found, found.toSorted().reverse())
      assert.equal(new Set(found).size, found.length)
      assert.deepEqual(
        there.filter((id) => !found.includes(id)),
        [],
      )
      assert.ok(found.length > there.length)
    })
  })
}

function matches(entry: CallLogEntry, query: CallQuery): boolean {
  const { account, key, model, line, user, status, statusClass, code, tags = {}, from, to } = query
  return (
    (account === undefined || entry.account === account) &&
    (key === undefined || entry.key === key) &&
    (model === undefined || entry.model === model) &&
    (line === undefined || lineOf(entry) === line) &&
    (user === undefined || entry.user === user) &&
    (status === undefined || entry.status === status) &&
    (statusClass === undefined || Math.floor(entry.status / 100) === statusClass) &&
    (code === undefined || entry.error_code === code) &&
    (query.clientRequestId === undefined || entry.client_request_id === query.clientRequestId) &&
    Object.entries(tags).every(([tag, value]) => entry.tags?.[tag] === value) &&
    entry.duration_ms >= (query.minDurationMs ?? 0) &&
    (from === undefined || Date.parse(entry.created_at) >= from) &&
    (to === undefined || Date.parse(entry.created_at) < to)
  )
}
