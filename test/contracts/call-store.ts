import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { type AttemptSummary, newRequestId } from '../../lib/core/call/index.ts'
import type { CallLogEntry, CallQuery, CallStore } from '../../lib/middleware/call-log/index.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** A store to try, and how to be done with it. */
export interface CallStoreUnderTest {
  store: CallStore
  close(): Promise<void>
}

const NOON = Date.parse('2026-01-31T12:00:00Z')

/** An entry of a call that began at a time. */
export function entryAt(time: number, members: Partial<CallLogEntry> = {}): CallLogEntry {
  return {
    id: newRequestId(time),
    object: 'call',
    created_at: new Date(time).toISOString(),
    duration_ms: 12,
    account: 'acme',
    key: 'key_acme',
    client_ip: '127.0.0.1',
    client_request_id: null,
    method: 'POST',
    path: '/v1/chat/completions',
    protocol: 'openai',
    model: 'chat-small',
    user: null,
    tags: {},
    stream: false,
    status: 200,
    error_code: null,
    outcome: 'completed',
    request: null,
    routing: { region: 'local', strategy: 'priority', eliminated: [], attempts: [] },
    usage: null,
    billing: null,
    limit: null,
    idempotency_key: null,
    original_request_id: null,
    response_body: null,
    ...members,
  }
}

const ATTEMPT: AttemptSummary = {
  line: 'line-a',
  protocol: 'openai',
  upstream_model: 'u',
  upstream_status: 200,
  outcome: 'completed',
  timeout_phase: null,
  detail: null,
  connect_ms: 0,
  first_byte_ms: 1,
  duration_ms: 2,
}

function routedTo(line: string | null): CallLogEntry['routing'] {
  const attempts = line === null ? [] : [{ ...ATTEMPT, line }]
  return { region: 'local', strategy: 'priority', eliminated: [], attempts }
}

/** The contract of every call store, whatever it keeps its entries in. */
export function callStoreContract(
  name: string,
  open: () => Promise<CallStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`call store: ${name}`, { skip }, () => {
    let store: CallStore
    const cleanUp = cleaningUp()
    let close: (() => Promise<void>) | undefined
    cleanUp.after(() => close?.())
    const fresh = async () => {
      await close?.()
      const opened = await open()
      store = opened.store
      close = () => opened.close()
    }
    before(fresh)

    it('finds a whole entry by its exact id', async () => {
      const entry = entryAt(NOON, {
        response_body: '{"né":"\u0000 \ud83d\ude00"}',
        client_request_id: `"it's"`,
      })
      await store.append([entry, entryAt(NOON)])
      assert.deepEqual(await store.find(entry.id), entry)
      assert.equal(await store.find(entry.id.slice(0, -1)), undefined)
      assert.equal(await store.find(newRequestId(NOON)), undefined)
    })

    it('keeps texts apart, and finds them, with any characters of a caller', async () => {
      const models = [
        'a\u0000b',
        'a\u24000b',
        'a\u2400b',
        'a\u2400\u2400b',
        'ab',
        "'a\\0b\u{10ffff}",
        '\u0000","duration_ms":99,"',
      ]
      const entries = models.map((model, i) =>
        entryAt(NOON + i, {
          account: 'odd',
          model,
          path: `/v1/${model}\ud800`,
          response_body: `${model}${model}`,
        }),
      )
      await store.append(entries)
      for (const entry of entries) {
        assert.deepEqual(await store.find(entry.id), entry)
        const listed = (await store.list({ account: 'odd', model: entry.model as string, limit: 10 })).entries
        assert.deepEqual(listed, [{ ...entry, response_body: null }])
      }
      const took = async (minDurationMs: number) =>
        (await store.list({ account: 'odd', minDurationMs, limit: 99 })).entries.length
      assert.deepEqual([await took(11), await took(13)], [models.length, 0])
      assert.equal(await store.find('req_\u0000'), undefined)
      assert.deepEqual((await store.list({ account: 'od\u0000d', limit: 10 })).entries, [])
    })

    it('does not change an entry that exists already', async () => {
      const entry = entryAt(NOON)
      await store.append([entry])
      await store.append([{ ...entry, status: 500 }, entryAt(NOON), { ...entry, status: 501 }])
      assert.equal((await store.find(entry.id))?.status, 200)
      const found = (await store.list({ limit: 1000 })).entries
      assert.equal(found.filter(({ id }) => id === entry.id).length, 1)
    })

    it('omits recorded answers from lists', async () => {
      const entry = entryAt(NOON, { account: 'bodies', response_body: 'x'.repeat(100_000) })
      await store.append([entry])
      assert.deepEqual((await store.list({ account: 'bodies', limit: 10 })).entries, [
        { ...entry, response_body: null },
      ])
    })

    it('lists the entries with given ids, newest first, that match the other filters', async () => {
      const entries = Array.from({ length: 4 }, (_, i) =>
        entryAt(NOON + i, { account: 'picked', status: i === 2 ? 502 : 200 }),
      )
      await store.append(entries)
      const [one, two, three, four] = entries.map(({ id }) => id) as [string, string, string, string]
      const listed = async (query: Partial<CallQuery>) =>
        (await store.list({ limit: 10, ...query })).entries.map(({ id }) => id)
      assert.deepEqual(await listed({ ids: [two, four, newRequestId(NOON)] }), [four, two])
      assert.deepEqual(await listed({ ids: [one, three, four], status: 502 }), [three])
      assert.deepEqual(await listed({ ids: [one, two], account: 'somebody else' }), [])
      assert.deepEqual(await listed({ ids: [one, two, three], limit: 2 }), [three, two])
    })

    it('takes a batch of any size at once', async () => {
      await fresh()
      const entries = Array.from({ length: 1234 }, (_, i) => entryAt(NOON + (i % 7)))
      await store.append(entries)
      await store.append([])
      assert.equal((await store.list({ limit: 5000 })).entries.length, 1234)
    })

    it('lists the same entries as a plain filter over all of them, page by page', async () => {
      await fresh()
      const times = fc.integer({ min: NOON, max: NOON + 9 })
      const entry = fc
        .record({
          time: times,
          account: fc.constantFrom('acme', 'globex', null),
          key: fc.constantFrom('k1', 'k2', null),
          line: fc.constantFrom('us', 'eu', null),
          user: fc.constantFrom('ann', 'bob', null),
          tags: fc.constantFrom({}, { team: 'search' }, { env: 'prod', team: 'search' }, { env: 'prod=1' }),
          duration_ms: fc.constantFrom(12, 999, 10_000, 45_000, 60_001),
          model: fc.constantFrom('chat-small', 'chat-large', null),
          client_request_id: fc.constantFrom('mine', "'; drop table calls", null),
          method: fc.constantFrom('POST', 'GET'),
          end: fc.constantFrom(
            [200, null, 'completed'] as const,
            [404, 'not_found', 'refused'] as const,
            [429, 'rate_limited', 'refused'] as const,
            [502, 'upstream_error', 'failed'] as const,
            [200, 'upstream_error', 'interrupted'] as const,
            [499, 'client_closed_request', 'interrupted'] as const,
          ),
        })
        .map(({ time, line, end: [status, error_code, outcome], ...rest }) =>
          entryAt(time, { ...rest, routing: routedTo(line), status, error_code, outcome }),
        )
      const optional = <T>(value: fc.Arbitrary<T>) => fc.oneof(fc.constant(undefined), value)
      const query = fc.record({
        account: optional(fc.constantFrom('acme', 'globex', 'nobody')),
        model: optional(fc.constantFrom('chat-small', 'chat-large')),
        key: optional(fc.constantFrom('k1', 'k2')),
        line: optional(fc.constantFrom('us', 'eu')),
        user: optional(fc.constantFrom('ann', 'bob', 'team=search')),
        tags: optional(fc.constantFrom({ team: 'search' }, { env: 'prod', team: 'search' }, { env: 'prod' })),
        minDurationMs: optional(fc.constantFrom(0, 1000, 10_000, 50_000, 60_001)),
        status: optional(fc.constantFrom(200, 404, 429)),
        statusClass: optional(fc.constantFrom(2, 4, 5)),
        code: optional(fc.constantFrom('not_found', 'rate_limited')),
        outcome: optional(fc.constantFrom('completed', 'refused', 'interrupted')),
        counted: optional(fc.constantFrom('requests', 'refused', 'failed')),
        clientRequestId: optional(fc.constantFrom('mine', "'; drop table calls")),
        from: optional(times),
        to: optional(times),
        limit: fc.integer({ min: 1, max: 9 }),
      })
      const known: CallLogEntry[] = []
      await fc.assert(
        fc.asyncProperty(fc.array(entry, { maxLength: 6 }), query, async (entries, asked) => {
          known.push(...entries)
          await store.append(entries)
          const expected = known.filter((e) => matches(e, asked)).sort((a, b) => (a.id < b.id ? 1 : -1))
          assert.deepEqual(ids(await allPages(store, asked)), ids(expected))
        }),
        { numRuns: 40 },
      )
      assert.ok(known.length > 50)
    })

    it('returns all entries or none for times that no id can contain', async () => {
      await fresh()
      await store.append([entryAt(NOON)])
      assert.equal((await store.list({ from: -1, to: 8.64e15, limit: 10 })).entries.length, 1)
      assert.equal((await store.list({ from: 8.64e15, limit: 10 })).entries.length, 0)
      assert.equal((await store.list({ to: -1, limit: 10 })).entries.length, 0)
    })

    it('prunes the oldest entries in batches, and no others', async () => {
      await fresh()
      const entries = Array.from({ length: 10 }, (_, i) => entryAt(NOON + i))
      await store.append([...entries].reverse())
      assert.equal(await store.prune(NOON + 7, 5), 5)
      assert.deepEqual(ids((await store.list({ limit: 20 })).entries), ids(entries.slice(5).reverse()))
      assert.equal(await store.prune(NOON + 7, 5), 2)
      assert.equal(await store.prune(NOON + 7, 5), 0)
      assert.deepEqual(ids((await store.list({ limit: 20 })).entries), ids(entries.slice(7).reverse()))
      assert.equal(await store.find(entries[6]!.id), undefined)
    })
  })
}

function matches(entry: CallLogEntry, query: CallQuery): boolean {
  const time = Date.parse(entry.created_at)
  return (
    [undefined, entry.account].includes(query.account) &&
    [undefined, entry.model].includes(query.model) &&
    [undefined, entry.key].includes(query.key) &&
    [undefined, entry.routing?.attempts[0]?.line].includes(query.line) &&
    [undefined, entry.user].includes(query.user) &&
    Object.entries(query.tags ?? {}).every(([name, value]) => entry.tags?.[name] === value) &&
    [undefined, entry.status].includes(query.status) &&
    [undefined, Math.floor(entry.status / 100)].includes(query.statusClass) &&
    entry.duration_ms >= (query.minDurationMs ?? 0) &&
    [undefined, entry.error_code as string | null].includes(query.code) &&
    [undefined, entry.client_request_id].includes(query.clientRequestId) &&
    [undefined, entry.outcome].includes(query.outcome) &&
    (query.counted === undefined || isCounted(entry, query.counted)) &&
    time >= (query.from ?? 0) &&
    time < (query.to ?? Number.POSITIVE_INFINITY)
  )
}

/** Whether usage counts a call so: one that a line cut off failed, one whose caller left did not. */
function isCounted({ method, outcome, error_code }: CallLogEntry, counted: string): boolean {
  if (method === 'GET') return false
  if (counted === 'requests' || outcome === counted) return true
  return counted === 'failed' && outcome === 'interrupted' && error_code !== 'client_closed_request'
}

async function allPages(store: CallStore, query: CallQuery): Promise<CallLogEntry[]> {
  const all: CallLogEntry[] = []
  for (let before: string | undefined; ; ) {
    const { entries, next } = await store.list({ ...query, before })
    assert.ok(entries.length <= query.limit)
    all.push(...entries)
    if (next === undefined && entries.length < query.limit) return all
    assert.ok(next === undefined || entries.every(({ id }) => id >= next))
    before = next ?? entries.at(-1)?.id
  }
}

function ids(entries: readonly CallLogEntry[]): string[] {
  return entries.map(({ id }) => id)
}
