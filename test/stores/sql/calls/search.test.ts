import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AttemptSummary } from '../../../../lib/core/call/index.ts'
import type { CallLogEntry, CallQuery } from '../../../../lib/middleware/call-log/index.ts'
import { SqlCallStore } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const NOON = Date.parse('2026-01-31T12:00:00Z')
const CALLS = 1500
/** Round ones, as people ask for them, and others. */
const ASKED_MS = [
  1, 2, 3, 5, 9, 10, 19, 20, 21, 50, 99, 100, 200, 300, 500, 999, 1000, 1500, 2000, 3000, 4000, 5000, 9999,
  10_000, 10_001, 15_000, 20_000, 25_000, 30_000, 45_000, 60_000, 90_000, 120_000, 180_000, 300_000, 600_000,
  1_200_000, 1_800_000, 3_600_000, 7_200_000,
]
const TOOK_MS = ASKED_MS.flatMap((ms) => [ms - 1, ms])

const ids = (entries: readonly CallLogEntry[]) => entries.map(({ id }) => id)

/** All pages of a search, and how many they were. */
async function searched(store: SqlCallStore, query: CallQuery): Promise<{ found: string[]; pages: number }> {
  const found: string[] = []
  for (let pages = 1, before: string | undefined; ; pages++) {
    const page = await store.list({ ...query, before })
    found.push(...ids(page.entries))
    if (page.next === undefined && page.entries.length < query.limit) return { found, pages }
    before = page.next ?? page.entries.at(-1)?.id
  }
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a search through many calls: ${name}`, { skip }, () => {
    it('finds those that took so long, whatever time is asked for, with an account and without one', async () => {
      const store = new SqlCallStore((await emptied()).db)
      const entries = TOOK_MS.map((duration_ms, i) =>
        entryAt(NOON + i, { duration_ms, account: i % 3 === 0 ? 'globex' : 'acme' }),
      )
      await store.append(entries)
      const newest = entries.toReversed()
      for (const minDurationMs of ASKED_MS)
        for (const account of [undefined, 'globex']) {
          const expected = newest.filter(
            (each) =>
              each.duration_ms >= minDurationMs && (account === undefined || each.account === account),
          )
          const { found } = await searched(store, { minDurationMs, account, limit: 60 })
          assert.deepEqual(found, ids(expected), `${minDurationMs} ms of ${account}`)
        }
    })

    it('finds what passes several filters of which each has many, page by page, and all of it', async () => {
      const store = new SqlCallStore((await emptied()).db)
      const entries = Array.from({ length: CALLS }, (_, i) =>
        entryAt(NOON + i, {
          account: i % 5 === 0 ? 'globex' : 'acme',
          user: i % 2 === 0 ? 'ann' : 'bob',
          tags: i % 3 === 0 ? { team: 'search', env: `${i % 4}` } : {},
          model: i % 7 === 0 ? 'chat-large' : 'chat-small',
          key: i % 11 === 0 ? 'k1' : 'k2',
          ...(i % 13 === 0 ? { status: 503, error_code: 'no_candidate' as const } : {}),
          duration_ms: i % 17 === 0 ? 12_345 : 40,
        }),
      )
      for (let i = 0; i < CALLS; i += 1000) await store.append(entries.slice(i, i + 1000))
      const passes: [Partial<CallQuery>, (i: number) => boolean][] = [
        [{ user: 'ann', tags: { team: 'search' } }, (i) => i % 6 === 0],
        [{ user: 'bob', tags: { team: 'search', env: '1' } }, (i) => i % 12 === 9],
        [{ user: 'ann', tags: { env: '1' } }, () => false],
        [{ user: 'ann', model: 'chat-large', status: 503 }, (i) => i % 182 === 0],
        [{ account: 'acme', user: 'ann', tags: { team: 'search' } }, (i) => i % 5 !== 0 && i % 6 === 0],
        [{ account: 'globex', model: 'chat-large', key: 'k1' }, (i) => i % 385 === 0],
        [{ account: 'globex', code: 'no_candidate', user: 'bob' }, (i) => i % 65 === 0 && i % 2 === 1],
        [{ key: 'k1', status: 200, user: 'ann' }, (i) => i % 22 === 0 && i % 13 !== 0],
        [{ statusClass: 2, model: 'chat-large' }, (i) => i % 7 === 0 && i % 13 !== 0],
        [{ statusClass: 5, minDurationMs: 12_000 }, (i) => i % 221 === 0],
        [{ account: 'acme', minDurationMs: 12_345, user: 'ann' }, (i) => i % 34 === 0 && i % 5 !== 0],
        [{ minDurationMs: 12_346, user: 'ann' }, () => false],
        [
          { user: 'ann', model: 'chat-small', from: NOON + 500, to: NOON + 900 },
          (i) => i >= 500 && i < 900 && i % 2 === 0 && i % 7 !== 0,
        ],
      ]
      for (const [filters, isOne] of passes) {
        const expected = entries.filter((_, i) => isOne(i)).toReversed()
        const query = { ...filters, limit: 40 }
        const { found, pages } = await searched(store, query)
        assert.deepEqual(found, ids(expected), JSON.stringify(filters))
        // A page that stops early has compared 250 calls at least.
        assert.ok(pages <= 2 + expected.length / 40 + CALLS / 250, `${pages} pages`)
      }
    })

    it('of an account finds none of another by its key or line, however long its calls took', async () => {
      const store = new SqlCallStore((await emptied()).db)
      const rare = (i: number) => i % 31 === 4
      const attempts = [{ line: 'us' } as AttemptSummary]
      const entries = Array.from({ length: 800 }, (_, i) =>
        entryAt(NOON + i, {
          account: i % 2 === 0 ? 'globex' : 'acme',
          key: rare(i) ? 'rare' : 'k',
          duration_ms: i % 5 === 0 ? 40 : 12_345,
          ...(rare(i) && { routing: { region: 'local', strategy: 'priority', eliminated: [], attempts } }),
        }),
      )
      await store.append(entries)
      const expected = entries.filter((_, i) => rare(i) && i % 2 === 0 && i % 5 !== 0).toReversed()
      for (const filters of [{ key: 'rare' }, { line: 'us' }, { key: 'rare', line: 'us' }])
        for (const minDurationMs of [12_000, 12_345]) {
          const { found } = await searched(store, { account: 'globex', ...filters, minDurationMs, limit: 10 })
          assert.deepEqual(found, ids(expected), JSON.stringify(filters))
        }
    })
  })
}
