import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry, CallOutcome, OpenCall } from '../../../lib/core/call/index.ts'
import { NO_TAGS } from '../../../lib/core/catalog/index.ts'
import {
  durationOf,
  FineRows,
  isFine,
  isOf,
  MAX_FINE_ROWS,
  NOT_KNOWN,
  shareOfCharge,
  shareOfEntry,
  type UsageGroup,
  type UsageShare,
  UsageSums,
  usageOfCall,
  usageOfEntry,
  usageOfPart,
} from '../../../lib/core/usage/index.ts'

const HOUR_MS = 3_600_000

const shareOf = (members: Partial<UsageShare> = {}): UsageShare => ({
  ...shareOfCharge({ account: 'acme', key: 'k', amount: 0n, at: 5 * HOUR_MS, usage: NOT_KNOWN }),
  ...members,
})

function addTo(sums: UsageSums, members: Partial<UsageShare>, sign?: 1 | -1): void {
  const share = shareOf(members)
  sums.add(share, share.charged, share.cost, sign)
}

/** Sums of calls that took so long. */
function took(...ms: number[]): UsageSums {
  const sums = new UsageSums()
  for (const durationMs of ms) addTo(sums, { durationMs })
  return sums
}

const EVERYTHING = {
  ...{ requests: 2, refused: 3, failed: 5, inputTokens: 7, cachedInputTokens: 11, outputTokens: 13 },
  ...{ images: 17, seconds: 0.019, durationMs: 100, charged: 23n, cost: 29n },
}

describe('sums of usage', () => {
  it('include a call when it is added, exclude it when it is removed, and can be added up', () => {
    const one = new UsageSums()
    addTo(one, EVERYTHING)
    const { durations, ...counts } = one
    assert.deepEqual(counts, {
      ...{ requests: 2, refused: 3, failed: 5, inputTokens: 7, cachedInputTokens: 11, outputTokens: 13 },
      ...{ images: 17, milliseconds: 19, charged: 23n, cost: 29n },
    })
    assert.deepEqual(durations, [2, ...Array(11).fill(0)])
    const both = new UsageSums()
    both.merge(one)
    both.merge(one)
    for (const [name, value] of Object.entries(counts)) {
      const twice = typeof value === 'bigint' ? value * 2n : value * 2
      assert.equal(both[name as keyof typeof counts], twice, name)
    }
    assert.equal(both.durations[0], 4)
    for (let i = 0; i < 2; i++) addTo(both, EVERYTHING, -1)
    assert.deepEqual(both, new UsageSums())
  })

  for (const member of Object.keys(EVERYTHING) as (keyof typeof EVERYTHING)[])
    it(`are empty only without any value: ${member}`, () => {
      const sums = new UsageSums()
      assert.equal(sums.isEmpty, true)
      const requests = member === 'durationMs' ? 1 : 0
      addTo(sums, { requests, [member]: EVERYTHING[member] })
      assert.equal(sums.isEmpty, false)
    })

  it('are whole numbers, for any reported values', () => {
    const sums = new UsageSums()
    addTo(sums, {
      inputTokens: 1.6,
      outputTokens: Number.NaN,
      images: Number.POSITIVE_INFINITY,
      seconds: 0.0014,
    })
    assert.deepEqual([sums.inputTokens, sums.outputTokens, sums.images, sums.milliseconds], [2, 0, 0, 1])
  })

  it('count durations by ranges, which include their upper ends', () => {
    const ends = [100, 250, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000, 300_000]
    for (const [range, end] of ends.entries()) {
      const { durations } = took(end, end + 1, end + 1)
      assert.deepEqual([durations[range], durations[range + 1]], [1, 2], `${end} ms`)
    }
  })

  const shares: [name: string, ms: number[], share: number, expected: number | null][] = [
    ['no call', [], 0.5, null],
    ['none of the calls', [90], 0, null],
    ['half of a range', [90, 90], 0.5, 50],
    ['all of a range', [90, 90], 1, 100],
    ['a quarter of the second range', [90, 90, 240, 240, 240, 240], 0.5, 138],
    ['a range behind an empty one', [90, 400], 1, 500],
    ['the end of a range before an empty one', [90, 400], 0.5, 100],
    ['a range without an end', [400_000, 400_000], 0.5, 450_000],
  ]
  for (const [name, ms, share, expected] of shares)
    it(`return the time within which a share of the calls ended: ${name}`, () => {
      assert.equal(durationOf(took(...ms).durations, share), expected)
    })
})

const ENTRY = {
  ...{ created_at: '2026-11-24T12:00:00.000Z', duration_ms: 120, account: 'acme', key: 'k', method: 'POST' },
  ...{ model: 'm', outcome: 'completed', error_code: null, request: {}, idempotency_key: null },
  ...{ routing: { attempts: [{ line: 'first' }, { line: 'l' }] }, usage: null, billing: null },
} as unknown as CallLogEntry

const entry = (members: object): CallLogEntry => ({ ...ENTRY, ...members }) as CallLogEntry
const billing = (charged: string | null, reserved = '0') => ({ billing: { charged, reserved } })

describe('the usage of a charge', () => {
  it('is that of one call if nothing else is known', () => {
    const charge = { account: 'acme', key: null, amount: 7n, at: 5 }
    const known = { account: 'acme', key: null, at: 5, charged: 7n, cost: 0n }
    assert.deepEqual(shareOfCharge({ ...charge, usage: null }), { ...NOT_KNOWN, ...known })
    assert.deepEqual(shareOfCharge({ ...charge, cost: 3n }), { ...NOT_KNOWN, ...known, cost: 3n })
  })
})

describe('the usage of a call without a charge', () => {
  it('is that of its entry', () => {
    const usage = { input_tokens: 1, cached_input_tokens: 2, output_tokens: 3, images: 4, seconds: 5 }
    const tags = { team: 'search' }
    assert.deepEqual(shareOfEntry(entry({ usage, user: 'ann', tags })), {
      ...{ account: 'acme', key: 'k', model: 'm', line: 'l', user: 'ann', tags },
      ...{ requests: 1, refused: 0, failed: 0, durationMs: 120, at: Date.UTC(2026, 10, 24, 12) },
      ...{
        inputTokens: 1,
        cachedInputTokens: 2,
        outputTokens: 3,
        images: 4,
        seconds: 5,
        charged: 0n,
        cost: 0n,
      },
    })
  })

  const rows: [name: string, members: object, expected: Partial<UsageShare> | undefined][] = [
    [
      'a model that may not exist',
      { request: null, routing: null, outcome: 'refused' },
      { model: null, line: null, refused: 1 },
    ],
    ['a model that a line was chosen for', { request: null }, { model: 'm', line: 'l' }],
    [
      'a refusal, with those like it',
      { outcome: 'refused', repeats: 4 },
      { requests: 5, refused: 5, failed: 0, durationMs: null },
    ],
    [
      'a failure',
      { outcome: 'failed', repeats: 1 },
      { requests: 2, refused: 0, failed: 2, durationMs: null },
    ],
    [
      'an answer that broke off',
      { outcome: 'interrupted', error_code: 'upstream_error' },
      { failed: 1, durationMs: null },
    ],
    [
      'a caller who left',
      { outcome: 'interrupted', error_code: 'client_closed_request' },
      { failed: 0, durationMs: 120 },
    ],
    ['an answer that was ended', { outcome: 'interrupted' }, { failed: 0, durationMs: 120 }],
    ['a look-up', { method: 'GET' }, undefined],
    ['a look-up of a head', { method: 'HEAD' }, undefined],
    ['a deletion', { method: 'DELETE' }, undefined],
    ['a call of which nothing was run', { request: null, routing: null }, undefined],
    ['a charge', billing('0.1'), undefined],
    ['a look-up with a charge', { method: 'GET', ...billing('0.1') }, undefined],
    ['a look-up that would have been charged', { method: 'GET', ...billing(null) }, { requests: 1 }],
    ['a charge of nothing, of what was held', billing('0', '0.1'), undefined],
    ['a charge of nothing, with a key against doubles', { ...billing('0'), idempotency_key: 'x' }, undefined],
    ['a charge of nothing', billing('0'), { requests: 1, cost: 0n }],
    [
      'a charge of nothing, which cost the operator something',
      { billing: { charged: '0', reserved: '0', cost: '0.000000007' } },
      { requests: 1, charged: 0n, cost: 7n },
    ],
    [
      'what would have been charged',
      { billing: { charged: null, reserved: '1', cost: '0.000000007' } },
      { requests: 1, cost: 0n },
    ],
  ]
  for (const [name, members, expected] of rows)
    it(`counts each call once: ${name}`, () => {
      const share = shareOfEntry(entry(members))
      assert.equal(share === undefined, expected === undefined)
      for (const [member, value] of Object.entries(expected ?? {}))
        assert.equal(share?.[member as keyof UsageShare], value, member)
    })
})

describe('the users and tags of an account', () => {
  const of = (user: string | null, members: Partial<UsageShare> = {}) => shareOf({ user, ...members })
  /** Whether a share is counted with its user. */
  const isTold = (rows: FineRows, share: UsageShare) => rows.bounded(share) === share

  it('are counted separately up to a number in an hour, for each account and each hour', () => {
    const rows = new FineRows(2)
    assert.deepEqual(
      ['ann', 'bob', 'cid', 'bob'].map((user) => isTold(rows, of(user))),
      [true, true, false, true],
    )
    assert.deepEqual(rows.bounded(of('cid', { tags: { a: 'b' } })), of(null))
    assert.equal(isTold(rows, of('cid', { account: 'globex' })), true)
    assert.equal(isTold(rows, of('cid', { at: 6 * HOUR_MS })), true)
    assert.equal(isTold(rows, of('cid', { at: 6 * HOUR_MS - 1 })), false)
  })

  it('are separate for each key, model, line and set of tags', () => {
    for (const other of [{ key: 'l' }, { model: 'n' }, { line: 'm' }, { tags: { a: 'c' } }]) {
      const rows = new FineRows(1)
      const first = of('ann', { tags: { a: 'b' } })
      assert.deepEqual([isTold(rows, first), isTold(rows, { ...first, ...other })], [true, false])
      assert.equal(isTold(rows, first), true)
    }
  })

  it('are not affected by calls without users and tags', () => {
    const rows = new FineRows(1)
    for (const share of [of(null), of(null, { tags: {} }), of(null, { model: 'n' })])
      assert.equal(isTold(rows, share), true)
    assert.equal(isTold(rows, of(null, { tags: { a: 'b' } })), true)
    assert.equal(isTold(rows, of('ann')), false)
  })
})

describe('the models of an account', () => {
  it('are counted separately up to a number in an hour, for each account and each hour', () => {
    const rows = new FineRows(10, 2)
    const of = (model: string | null, members: Partial<UsageShare> = {}) => shareOf({ model, ...members })
    const counted = (share: UsageShare) => rows.bounded(share).model
    assert.deepEqual(
      ['a', 'b', 'c', 'b', null].map((model) => counted(of(model))),
      ['a', 'b', null, 'b', null],
    )
    assert.deepEqual(
      rows.bounded(of('c', { user: 'ann' })),
      of(null, { user: 'ann' }),
      'the rest is as it was',
    )
    assert.equal(counted(of('c', { account: 'globex' })), 'c')
    assert.equal(counted(of('c', { at: 6 * HOUR_MS })), 'c')
  })
})

const NOW = 1_700_000_000_000
const STARTED = Date.UTC(2026, 0, 31)
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
    startedAt: STARTED,
    ...members,
  }) as unknown as OpenCall
const ended = (finish: string, errorCode: string | null = null) =>
  ({ finish, errorCode }) as unknown as CallOutcome

describe('the usage of a call that is settled', () => {
  const of = { model: 'm', line: null, user: null, tags: NO_TAGS }

  it('has its duration and the usage that its line reported', (t) => {
    t.mock.method(performance, 'now', () => NOW)
    assert.deepEqual(usageOfCall(call({}), ended('completed')), {
      ...{ ...of, ...NOTHING },
      durationMs: 120,
      startedAt: STARTED,
    })
    const usage = { inputTokens: 1, cachedInputTokens: 2, outputTokens: 3, images: 4, seconds: 5 }
    const tags = { team: 'search' }
    assert.deepEqual(
      usageOfCall(call({ usage, tags, user: 'ann', servedBy: { line: 'l' } }), ended('completed')),
      {
        ...{ model: 'm', line: 'l', user: 'ann', tags },
        ...{ ...NOTHING, ...usage, durationMs: 120, startedAt: STARTED },
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
    it(`is a failure without a duration, by its end: ${finish}, ${code}`, (t) => {
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
  it('has zeros for values that its line did not report', () => {
    const entry = {
      request: {},
      routing: null,
      model: 'm',
      outcome: 'completed',
      duration_ms: 7,
      error_code: null,
      user: null,
      tags: NO_TAGS,
    } as unknown as CallLogEntry
    const expected = { ...{ model: 'm', line: null, user: null, tags: NO_TAGS }, ...NOTHING, durationMs: 7 }
    for (const usage of [null, {}])
      assert.deepEqual(usageOfEntry({ ...entry, usage } as CallLogEntry), expected)
  })

  it('has no cost if that is not known', () => {
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

  it('is absent for a request that neither runs a model nor is passed on, unless it would have been charged or failed', () => {
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

describe('the attribution of usage', () => {
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

  it('is divided by users and tags only where a query asks for them', () => {
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
