import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryUsageStore } from '../../../lib/core/usage/index.ts'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { entry, LOOKUP, shared } from './shared-writer.ts'

const refusal = (code: CallLogEntry['error_code'], extra: Partial<CallLogEntry> = {}) =>
  ({ status: 429, error_code: code, outcome: 'refused', ...extra }) as const

describe('entries', () => {
  it('of polling are one a minute for each key and kind of path, and none is uncounted', (t) => {
    const { entries, written, tick, told } = shared(t)
    for (let second = 0; second < 180; second++) {
      entries.add(entry({ ...LOOKUP, path: `/v1/calls/req_${second}` }))
      entries.add(entry({ ...LOOKUP, path: `/api/v3/contents/generations/tasks/t-${second}` }))
      entries.add(entry({ ...LOOKUP, key: 'other' }))
      tick(1000)
    }
    assert.ok(written.length <= 3 * 4, `${written.length}`)
    entries.close()
    assert.equal(told(), 180 * 3)
  })

  it('of polling are one a minute however its caller writes a path', (t) => {
    const { entries, written, told } = shared(t)
    for (const path of ['/v1/calls/req_1', '/api/v3/contents/generations/tasks/t-1'])
      for (let i = 0; i < 500; i++) {
        let letter = 0
        const other = path.replaceAll(/[a-z]/g, (small) =>
          (i >> letter++) & 1 ? small.toUpperCase() : small,
        )
        entries.add(entry({ ...LOOKUP, path: other }))
      }
    assert.equal(written.length, 2)
    entries.close()
    assert.equal(told(), 1000)
  })

  it('are written at once where there is room, and later with a count', (t) => {
    const { entries, written, tick } = shared(t)
    const [first, second, third] = [entry(LOOKUP), entry(LOOKUP), entry(LOOKUP)]
    entries.add(first)
    assert.deepEqual(written, [first])
    entries.add(second)
    entries.add(third)
    assert.equal(written.length, 1)
    tick(60_000)
    assert.deepEqual(written.slice(1), [{ ...third, repeats: 1 }])
  })

  it('of a flood without a key are bounded, however many addresses, paths and keys it names', (t) => {
    const { entries, written, tick, told } = shared(t)
    const nobody = { account: null, key: null, outcome: 'refused', status: 401 } as const
    for (let second = 0; second < 60; second++) {
      for (let i = 0; i < 100; i++)
        entries.add(
          entry({ ...nobody, error_code: 'invalid_credential', path: `/v1/${i}`, client_ip: `10.0.0.${i}` }),
        )
      tick(1000)
    }
    assert.ok(written.length <= 50 + 61, `${written.length}`)
    entries.close()
    assert.equal(told(), 6000)
  })

  it('of one key’s refused calls are bounded, and another key’s are not shared with them', (t) => {
    const { entries, written, tick, told } = shared(t)
    for (let second = 0; second < 60; second++) {
      for (let i = 0; i < 200; i++) entries.add(entry(refusal('rate_limited')))
      entries.add(entry(refusal('rate_limited', { key: 'other' })))
      tick(1000)
    }
    assert.equal(written.filter(({ key }) => key === 'other').length, 60)
    assert.ok(written.length <= 60 + 100 + 5 * 61, `${written.length}`)
    entries.close()
    assert.equal(told(), 60 * 201)
  })

  it('of calls without a key are bounded by what refused them, and by their status where nothing did', (t) => {
    const { entries, written } = shared(t)
    for (let i = 0; i < 80; i++) {
      entries.add(entry({ key: null, ...refusal('missing_credential', { status: 401 }) }))
      entries.add(entry({ key: null, ...refusal('invalid_credential', { status: 401 }) }))
      entries.add(entry({ key: null, status: 404 }))
    }
    for (const [status, code] of [
      [401, 'missing_credential'],
      [401, 'invalid_credential'],
      [404, null],
    ] as const) {
      const own = written.filter((each) => each.status === status && each.error_code === code)
      assert.equal(own.length, 50, `${status} ${code}`)
    }
  })

  it('of failed calls that were charged are never shared, and those that cost nothing and asked no upstream are', (t) => {
    for (const [charged, most] of [
      ['0.5', 150],
      ['0', 100],
      [null, 100],
    ] as const) {
      const { entries, written } = shared(t)
      const billing = { charged } as unknown as CallLogEntry['billing']
      for (let i = 0; i < 150; i++)
        entries.add(entry({ ...refusal('upstream_error'), outcome: 'failed', billing }))
      assert.equal(written.length, most, `${charged}`)
      t.mock.timers.reset()
      t.mock.restoreAll()
    }
  })

  it('of calls that lines failed are never shared, so that each trace is found by its request id', (t) => {
    const routing = { attempts: [{ line: 'a' }] } as unknown as CallLogEntry['routing']
    for (const [outcome, code, key, most] of [
      ['failed', 'upstream_error', 'k', 150],
      ['interrupted', 'upstream_timeout', 'k', 150],
      // A caller can provoke these for nothing.
      ['failed', 'invalid_request', 'k', 100],
      ['interrupted', 'client_closed_request', 'k', 100],
      ['failed', 'upstream_error', null, 50],
    ] as const) {
      const { entries, written } = shared(t)
      for (let i = 0; i < 150; i++) entries.add(entry({ ...refusal(code), outcome, routing, key }))
      assert.equal(written.length, most, `${outcome} ${code} ${key}`)
      t.mock.timers.reset()
    }
  })

  it('of calls that used something are never shared, for any caller and any outcome', (t) => {
    const used = {
      usage: { input_tokens: 100 },
      routing: { attempts: [] },
    } as unknown as Partial<CallLogEntry>
    const left = { outcome: 'interrupted', error_code: 'client_closed_request', status: 499 } as const
    for (const ended of [left, { outcome: 'failed', status: 502 } as const, {}])
      for (const key of ['k', null]) {
        const { entries, written } = shared(t)
        for (let i = 0; i < 150; i++) entries.add(entry({ ...used, ...ended, key }))
        assert.equal(written.length, 150)
        t.mock.timers.reset()
      }
  })

  it('of charged calls without a key are never shared', (t) => {
    const { entries, written } = shared(t)
    const billing = { charged: '0.5' } as unknown as CallLogEntry['billing']
    for (let i = 0; i < 150; i++) entries.add(entry({ key: null, billing }))
    assert.equal(written.length, 150)
  })

  it('are counted by usage as the calls that share them', async (t) => {
    const settled = { charged: '0', reserved: '1' } as unknown as CallLogEntry['billing']
    for (const key of ['k', null])
      for (const code of ['rate_limited', 'internal_error'] as const) {
        const { entries, written } = shared(t)
        const [each, told] = [new MemoryUsageStore(), new MemoryUsageStore()]
        for (let i = 0; i < 200; i++)
          for (const kind of [
            refusal(code),
            refusal(code, { outcome: 'failed' }),
            refusal(code, { outcome: 'failed', billing: settled }),
            refusal(code, { method: 'GET' }),
          ]) {
            each.count(entry({ ...kind, key }))
            entries.add(entry({ ...kind, key }))
          }
        entries.close()
        assert.ok(written.length < 4 * 110)
        for (const shownAs of written) told.count(shownAs)
        const all = { from: 0, to: Date.UTC(2027, 0), groupBy: [], limit: 1 }
        const [sums] = await each.read(all)
        assert.deepEqual([sums?.sums.refused, sums?.sums.failed], [200, 200])
        assert.deepEqual(await told.read(all), [sums])
        t.mock.timers.reset()
      }
  })

  it('of charged calls, and of answers that are kept for a repetition, are never shared', (t) => {
    const { entries, written } = shared(t)
    const billing = {
      currency: 'USD',
      reserved: '1',
      charged: '1',
      required: null,
      available: null,
      items: [],
    }
    for (let i = 0; i < 500; i++) {
      entries.add(entry({ billing }))
      entries.add(entry({ idempotency_key: `once-${i}` }))
      entries.add(entry({ ...LOOKUP, billing }))
      entries.add(
        entry({ outcome: 'interrupted', error_code: 'client_closed_request', status: 499, billing }),
      )
      entries.add(entry({ method: 'GET', status: 101, billing }))
    }
    assert.equal(written.length, 2500)
  })

  it('of free answers that are kept for a repetition have no labels after a burst, and all without them', (t) => {
    const { entries, written, tick } = shared(t)
    const labels = { user: 'somebody', tags: { team: 'search' } }
    const add = (i: number) => entries.add(entry({ idempotency_key: `once-${i}`, ...labels }))
    for (let i = 0; i < 500; i++) add(i)
    assert.deepEqual(
      written.map(({ idempotency_key }) => idempotency_key),
      Array.from({ length: 500 }, (_, i) => `once-${i}`),
    )
    assert.equal(written.filter(({ user }) => user === labels.user).length, 100)
    assert.equal(written.filter(({ tags }) => tags?.team !== undefined).length, 100)
    tick(1000)
    for (let i = 0; i < 10; i++) add(i)
    assert.equal(written.slice(500).filter(({ user }) => user !== null).length, 5)
  })

  it('forget who has not been seen for long, and never know more than 10,000', (t) => {
    const { entries, tick, told } = shared(t)
    for (let i = 0; i < 25_000; i++) entries.add(entry({ ...LOOKUP, key: `k-${i}` }))
    for (let i = 0; i < 25_000; i++) entries.add(entry({ ...LOOKUP, key: `k-${i}` }))
    tick(120_000)
    entries.close()
    assert.equal(told(), 50_000)
  })

  it('of a new subject are no burst of all that waits, though there are 10,000 subjects', (t) => {
    const { entries, written, told } = shared(t)
    for (const round of [1, 2, 3])
      for (let i = 0; i < 10_000; i++) entries.add(entry({ ...LOOKUP, key: `k-${i}`, id: `${round}` }))
    assert.equal(told(), 10_000)
    for (let i = 0; i < 100; i++) {
      entries.add(entry({ ...LOOKUP, key: `new-${i}` }))
      const [oldest, own] = written.splice(0)
      assert.deepEqual([oldest?.key, oldest?.id, oldest?.repeats], [`k-${i}`, '3', 1])
      assert.deepEqual([own?.key, own?.repeats, written.length], [`new-${i}`, undefined, 0])
    }
  })
})
