import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Call, CallLogEntry, CallOutcome } from '../../../lib/core/call/index.ts'
import { NO_TAGS } from '../../../lib/core/catalog/index.ts'
import {
  FineRows,
  isFine,
  isOf,
  MAX_FINE_ROWS,
  NOT_KNOWN,
  shareOfCharge,
  shareOfEntry,
  type UsageGroup,
  usageOfCall,
  usageOfEntry,
  usageOfPart,
} from '../../../lib/core/usage/index.ts'

const NOW = 1_700_000_000_000
const NOTHING = {
  ...{ requests: 1, refused: 0, failed: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 },
  ...{ images: 0, seconds: 0 },
}
const call = (members: object) =>
  ({
    model: 'm',
    servedBy: undefined,
    user: null,
    tags: undefined,
    usage: undefined,
    begunAt: NOW - 120,
    ...members,
  }) as unknown as Call
const ended = (finish: string, errorCode: string | null = null) =>
  ({ finish, errorCode }) as unknown as CallOutcome

describe('the usage of a call that is settled', () => {
  const of = { model: 'm', line: null, user: null, tags: NO_TAGS }

  it('is what it took and what its line told', (t) => {
    t.mock.method(performance, 'now', () => NOW)
    assert.deepEqual(usageOfCall(call({}), ended('completed')), { ...of, ...NOTHING, durationMs: 120 })
    const usage = { inputTokens: 1, cachedInputTokens: 2, outputTokens: 3, images: 4, seconds: 5 }
    const tags = { team: 'search' }
    assert.deepEqual(
      usageOfCall(call({ usage, tags, user: 'ann', servedBy: { line: 'l' } }), ended('completed')),
      {
        ...{ model: 'm', line: 'l', user: 'ann', tags },
        ...{ ...NOTHING, ...usage, durationMs: 120 },
      },
    )
  })

  const ENDS: [finish: string, code: string | null, failed: number][] = [
    ['completed', null, 0],
    ['failed', null, 1],
    ['interrupted', null, 0],
    ['interrupted', 'upstream_error', 1],
    ['interrupted', 'client_closed_request', 0],
    ['refused', 'rate_limited', 0],
  ]
  for (const [finish, code, failed] of ENDS)
    it(`is a failure, and took no time that counts, by how it ended: ${finish}, ${code}`, (t) => {
      t.mock.method(performance, 'now', () => NOW)
      const made = usageOfCall(call({}), ended(finish, code))
      assert.deepEqual([made.failed, made.durationMs], [failed, failed ? null : 120])
    })

  it('of a part of it counts no call', () => {
    const part = { ...NOT_KNOWN, ...of, requests: 0 }
    assert.deepEqual(usageOfPart(call({})), part)
    const tags = { a: 'b' }
    const whole = { model: 'n', servedBy: { line: 'l' }, user: 'ann', tags }
    assert.deepEqual(usageOfPart(call(whole)), { ...part, model: 'n', line: 'l', user: 'ann', tags })
  })
})

describe('the usage of an entry of the log', () => {
  it('has zeros for what its line did not tell', () => {
    const entry = {
      request: {},
      routing: null,
      model: 'm',
      outcome: 'completed',
      duration_ms: 7,
      error_code: null,
    } as unknown as CallLogEntry
    const expected = { ...{ model: 'm', line: null, user: null, tags: NO_TAGS }, ...NOTHING, durationMs: 7 }
    for (const usage of [null, {}])
      assert.deepEqual(usageOfEntry({ ...entry, usage } as CallLogEntry), expected)
  })

  it('has no cost that is not known', () => {
    const entry = (billing: object) =>
      ({
        created_at: '2026-11-24T12:00:00.000Z',
        method: 'POST',
        request: {},
        routing: null,
        idempotency_key: null,
        billing,
      }) as unknown as CallLogEntry
    assert.equal(shareOfEntry(entry({ charged: '0', reserved: '0' }))?.cost, 0n)
    assert.equal(shareOfEntry(entry({ charged: '0', reserved: '0', cost: '2' }))?.cost, 2_000_000_000n)
  })

  it('is none of what neither runs a model nor is passed on, unless it would have been charged or failed', () => {
    const entry = {
      created_at: '2026-11-24T12:00:00.000Z',
      method: 'POST',
      request: null,
      routing: null,
      outcome: 'completed',
      billing: null,
    }
    const counted = (members: object) =>
      shareOfEntry({ ...entry, ...members } as unknown as CallLogEntry) !== undefined
    assert.equal(counted({}), false)
    for (const more of [
      { request: {} },
      { routing: { attempts: [] } },
      { outcome: 'failed' },
      { outcome: 'refused' },
    ])
      assert.equal(counted(more), true)
    assert.equal(counted({ method: 'GET', request: {} }), false)
  })
})

describe('what usage is of', () => {
  it('is the same only if all of it is, its tags as one object', () => {
    const tags = { a: 'b' }
    const of = { account: 'acme', key: 'k', model: 'm', line: 'l', user: 'u', tags }
    assert.equal(isOf(of, of, of), true)
    for (const member of ['account', 'key', 'model', 'line', 'user'] as const) {
      const other = { ...of, [member]: 'x' }
      assert.equal(isOf(of, other, other), false, member)
    }
    assert.equal(isOf(of, of, { ...of, tags: { a: 'b' } }), false)
  })

  it('is told apart by users and tags only where a query asks for them', () => {
    const asks = (groupBy: UsageGroup[], more: object = {}) => isFine({ groupBy, ...more })
    assert.deepEqual(
      [
        asks([]),
        asks(['hour', 'account', 'model']),
        asks(['hour', 'user']),
        asks(['tag:team']),
        asks([], { user: '' }),
        asks([], { tags: {} }),
      ],
      [false, false, true, true, true, true],
    )
  })
})

describe('users and tags', () => {
  const share = (user: string, at = 0) =>
    shareOfCharge({ account: 'a', key: 'k', amount: 0n, at, usage: { ...NOT_KNOWN, user } })

  it('are 2000 in an hour', () => {
    const rows = new FineRows()
    for (let i = 0; i < MAX_FINE_ROWS; i++) assert.equal(rows.bounded(share(`${i}`)).user, `${i}`)
    assert.deepEqual(
      [MAX_FINE_ROWS, rows.bounded(share('more')).user, rows.bounded(share('7')).user],
      [2000, null, '7'],
    )
  })

  it('of the earliest hours are forgotten once they are 200,000', () => {
    const rows = new FineRows(50_000)
    const fill = (hour: number) => {
      for (let i = 0; i < 50_000; i++) rows.bounded(share(`${i}`, hour * 3_600_000))
    }
    for (let hour = 0; hour < 4; hour++) fill(hour)
    assert.equal(rows.bounded(share('more', 0)).user, null, 'all are remembered')
    rows.bounded(share('one', 5 * 3_600_000))
    assert.equal(rows.bounded(share('more', 0)).user, 'more', 'the first hour is forgotten')
    assert.equal(rows.bounded(share('more', 3_600_000)).user, null, 'and no other')
  })
})
