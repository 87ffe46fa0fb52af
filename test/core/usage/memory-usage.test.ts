import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { HOUR_MS, MemoryUsageStore, NOT_KNOWN, type UsageGroup } from '../../../lib/core/usage/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { usageContract } from '../../contracts/usage.ts'

usageContract('memory', async () => {
  const ledger = new MemoryLedger()
  const calls = new MemoryCallStore({ usage: ledger.usage })
  return { ledgers: [ledger], calls, usage: ledger.usage, close: async () => {} }
})

describe('usage in memory', () => {
  it('counts each call in its hour, in whatever order calls come', async () => {
    const usage = new MemoryUsageStore()
    for (const [hour, amount] of [
      [6, 1n],
      [5, 10n],
      [7, 100n],
      [6, 1000n],
    ] as const)
      usage.add({ account: 'acme', key: 'k', amount, at: hour * HOUR_MS })
    const rows = await usage.read({ from: 0, to: 9 * HOUR_MS, groupBy: ['hour'], limit: 9 })
    assert.deepEqual(
      rows.map(({ groups: [hour], sums }) => [Number(hour) / HOUR_MS, sums.charged]),
      [
        [5, 10n],
        [6, 1001n],
        [7, 100n],
      ],
    )
  })
})

describe('usage in memory, read', () => {
  const HOUR = 3_600_000
  const START = Date.UTC(2026, 0, 31, 23)
  const add = (store: MemoryUsageStore, at: number, members: object = {}) => {
    const { account, key, ...usage } = { ...NOT_KNOWN, account: 'a', key: 'k', ...members }
    store.add({ account, key, amount: 1n, at, usage })
  }
  const read = async (store: MemoryUsageStore, groupBy: UsageGroup[], more: object = {}) => {
    const rows = await store.read({ from: 0, to: Number.MAX_SAFE_INTEGER, groupBy, limit: 99, ...more })
    return rows.map(({ groups, sums }) => [...groups, Number(sums.charged)])
  }

  it('is grouped by the hour, the day and the month of UTC', async () => {
    const store = new MemoryUsageStore()
    for (const at of [START, START + HOUR - 1, START + HOUR, START + 25 * HOUR]) add(store, at)
    assert.deepEqual(await read(store, ['hour']), [
      [START, 2],
      [START + HOUR, 1],
      [START + 25 * HOUR, 1],
    ])
    assert.deepEqual(await read(store, ['day']), [
      [START - 23 * HOUR, 2],
      [START + HOUR, 1],
      [START + 25 * HOUR, 1],
    ])
    assert.deepEqual(await read(store, ['month']), [
      [Date.UTC(2026, 0), 2],
      [Date.UTC(2026, 1), 2],
    ])
    assert.deepEqual(await read(store, [], { from: START + HOUR, to: START + 25 * HOUR }), [[1]])
  })

  it('is grouped and filtered by its members', async () => {
    const store = new MemoryUsageStore()
    const members = ['account', 'key', 'model', 'line', 'user'] as const
    for (const member of members) {
      add(store, START, { [member]: 'x' })
      add(store, START, { [member]: null })
    }
    add(store, START, { tags: { team: 'x' } })
    for (const member of members) {
      const rows = await read(store, [member])
      assert.deepEqual(
        rows.find(([name]) => name === 'x'),
        ['x', 1],
        member,
      )
      assert.deepEqual(await read(store, [], { [member]: 'x' }), [[1]])
      assert.ok((await read(store, [], { [member]: '' })).length === 1)
    }
    assert.deepEqual(await read(store, ['tag:team']), [
      ['', 10],
      ['x', 1],
    ])
    assert.deepEqual(await read(store, [], { tags: { team: 'x' } }), [[1]])
    assert.deepEqual(await read(store, [], { tags: { team: '' } }), [[10]])
  })

  it('is sorted by the bytes of its groups, page by page, without voided calls', async () => {
    const store = new MemoryUsageStore()
    for (const user of ['b', 'é', 'a', 'z', '\uffee', '😀']) add(store, START, { user })
    store.add({ account: 'a', key: 'k', amount: 1n, at: START, usage: { ...NOT_KNOWN, user: 'z' } }, -1)
    const users = async (more: object) => (await read(store, ['hour', 'user'], more)).map(([, user]) => user)
    assert.deepEqual(await users({}), ['a', 'b', 'é', '\uffee', '😀'])
    assert.deepEqual(await users({ limit: 2 }), ['a', 'b'])
    assert.deepEqual(await users({ after: [START, 'b'] }), ['é', '\uffee', '😀'])
    assert.deepEqual(await users({ after: [START - 1, 'z'], limit: 1 }), ['a'])
    assert.deepEqual(await users({ after: [START + 1, ''] }), [])
  })

  it('returns what accounts and keys were charged', () => {
    const store = new MemoryUsageStore()
    add(store, START)
    add(store, START, { account: null, key: null })
    assert.deepEqual(store.charged(), [
      { account: 'a', key: 'k', charged: 1n },
      { account: '', key: null, charged: 1n },
    ])
  })

  it('is that of one call, without tokens and cost, if only the charge is known', async () => {
    const store = new MemoryUsageStore()
    store.add({ account: 'a', key: 'k', amount: 7n, at: START })
    store.add({ account: 'a', key: 'k', amount: 2n, cost: null, usage: null, at: START })
    const rows = await store.read({
      from: START,
      to: START + HOUR,
      groupBy: ['model', 'line', 'user'],
      limit: 9,
    })
    assert.equal(rows.length, 1)
    const { durations, ...counts } = { ...rows[0]?.sums }
    assert.deepEqual(rows[0]?.groups, ['', '', ''])
    assert.deepEqual(counts, {
      ...{ requests: 2, refused: 0, failed: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 },
      ...{ images: 0, milliseconds: 0, charged: 9n, cost: 0n },
    })
    assert.ok(durations?.every((count) => count === 0))
  })

  it('counts no new users and tags separately for an account that takes a quarter of the free space, but does for its known ones and other accounts', async () => {
    const store = new MemoryUsageStore()
    const END = START + 11 * HOUR
    add(store, START, { user: 'ann' })
    // Without users and tags, rows take no room.
    for (let i = 0; i < 20_000; i++) add(store, START, { model: `m${i % 1000}` })
    for (let i = 1; i < 19_999; i++) add(store, START + (i % 11) * HOUR, { user: `u${i}`, model: 'm' })
    add(store, END, { user: 'bob', tags: { team: 'x' } })
    add(store, END, { user: 'cid', tags: { team: 'y' } })
    add(store, START, { user: 'ann' })
    add(store, START + HOUR, { user: 'ann' })
    add(store, END, { account: 'b', user: 'cid', tags: { team: 'y' } })
    const ofA = { model: '', account: 'a' }
    assert.deepEqual(await read(store, ['user'], ofA), [
      ['', 2],
      ['ann', 2],
      ['bob', 1],
    ])
    assert.deepEqual(await read(store, ['tag:team'], ofA), [
      ['', 4],
      ['x', 1],
    ])
    assert.deepEqual(await read(store, ['user', 'tag:team'], { account: 'b' }), [['cid', 'y', 1]])
    assert.deepEqual(await read(store, []), [[40_004]])
  })

  it('counts the users of each account separately, for any number of users of other accounts', async () => {
    const store = new MemoryUsageStore()
    const accounts = ['a', 'b', 'c', 'd']
    for (let hour = 0; hour < 15; hour++)
      for (const account of accounts)
        for (let i = 0; i < 2000; i++) add(store, START + hour * HOUR, { account, user: `u${i}` })
    const AT = START + 15 * HOUR
    for (let i = 0; i < 1000; i++) add(store, AT + (i % 50) * HOUR, { account: 'late', user: `u${i % 20}` })
    assert.equal((await read(store, ['user'], { account: 'late' })).length, 20)
    for (const account of accounts)
      assert.deepEqual(await read(store, ['user'], { account, from: AT - HOUR, to: AT }), [['', 2000]])
  })

  it('has the minutes of an account, for any number of users of another account', async () => {
    const store = new MemoryUsageStore()
    const hour = Math.floor(Date.now() / HOUR) * HOUR - 3 * HOUR
    const ofB = { account: 'b', user: 'bob' }
    for (let minute = 0; minute < 60; minute++) add(store, hour + minute * 60_000, ofB)
    for (let minute = 0; minute < 120; minute++)
      for (let i = 0; i < 2000; i++)
        add(store, hour + minute * 60_000, { account: 'a', user: `u${i}`, model: `m${minute < 60}` })
    assert.equal((await read(store, ['minute'], { account: 'b' })).length, 60)
    const part = { from: hour + 10 * 60_000, to: hour + 40 * 60_000, account: 'b' }
    assert.deepEqual(await read(store, ['user'], part), [['bob', 30]])
    // Of the account that has too many, the sums of hours stay.
    assert.deepEqual(await read(store, ['hour'], { account: 'a' }), [
      [hour, 120_000],
      [hour + HOUR, 120_000],
    ])
  })

  it('has no minute that is partly forgotten, and none below zero', async () => {
    const store = new MemoryUsageStore()
    const hour = Math.floor(Date.now() / HOUR) * HOUR - 3 * HOUR
    const first = { ...NOT_KNOWN, user: 'first' }
    for (let i = 0; i < 2; i++) store.add({ account: 'a', key: 'k', amount: 1n, at: hour, usage: first })
    for (let minute = 0; minute < 120; minute++)
      for (let i = 0; i < 1900; i++)
        add(store, hour + minute * 60_000, { user: `u${i}`, model: `m${minute < 60}` })
    // One of the two is undone, long after its minute was forgotten.
    store.add({ account: 'a', key: 'k', amount: 1n, at: hour, usage: first }, -1)
    assert.deepEqual(await read(store, ['minute'], { user: 'first' }), [])
    assert.deepEqual(await read(store, ['hour'], { user: 'first' }), [[hour, 1]])
  })

  it('counts a call without a charge by its entry, and does not count a look-up', async () => {
    const store = new MemoryUsageStore()
    const entry = {
      created_at: new Date(START).toISOString(),
      account: 'a',
      key: 'k',
      method: 'POST',
      request: {},
      routing: null,
      model: 'm',
      outcome: 'completed',
      duration_ms: 1,
      error_code: null,
      usage: null,
      billing: { charged: '0', reserved: '0', cost: '3' },
      idempotency_key: null,
    }
    store.count(entry as unknown as CallLogEntry)
    store.count({ ...entry, billing: null, method: 'GET' } as unknown as CallLogEntry)
    const [row] = await store.read({ from: START, to: START + HOUR, groupBy: ['model'], limit: 9 })
    assert.deepEqual(
      [row?.groups, row?.sums.requests, row?.sums.charged, row?.sums.cost],
      [['m'], 1, 0n, 3_000_000_000n],
    )
  })
})
