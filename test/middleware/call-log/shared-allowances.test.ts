import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { entry, LOOKUP, shared } from './shared-writer.ts'

const costing = (charged: string | null) => ({ charged }) as unknown as CallLogEntry['billing']

/** Calls of one subject, how many entries it may have at once, and how many further ones in each minute. */
const ALLOWANCES: readonly [name: string, extra: Partial<CallLogEntry>, burst: number, aMinute: number][] = [
  ['look-ups', LOOKUP, 1, 1],
  ['look-ups of a head', { ...LOOKUP, method: 'HEAD' }, 1, 1],
  ['refused calls of a key', { status: 429, error_code: 'rate_limited', outcome: 'refused' }, 100, 300],
  ['free calls that succeed', {}, 100, 300],
  ['calls that are free by their price', { billing: costing('0') }, 100, 300],
  ['reads that are free by their price', { ...LOOKUP, billing: costing('0') }, 100, 300],
  ['failed calls that cost nothing', { status: 502, outcome: 'failed', billing: costing('0') }, 100, 300],
  ['calls without a key', { key: null, status: 401, error_code: 'invalid_credential' }, 50, 60],
]

describe('the entries that calls may have', () => {
  for (const [name, extra, burst, aMinute] of ALLOWANCES)
    it(`${name}: ${burst} at once, and ${aMinute} more in each minute`, (t) => {
      const { entries, written, tick } = shared(t)
      const flood = (count: number) => {
        for (let i = 0; i < count; i++) entries.add(entry(extra))
      }
      flood(burst + 20)
      assert.equal(written.length, burst)
      for (const minute of [1, 2]) {
        for (let second = 0; second < 60; second++) {
          tick(1000)
          flood(10)
        }
        assert.equal(written.length, burst + minute * aMinute)
      }
    })

  it('are as many at once again after a pause, and no more', (t) => {
    const { entries, written, tick } = shared(t)
    const flood = () => {
      for (let i = 0; i < 200; i++) entries.add(entry({ status: 400, outcome: 'refused' }))
      return written.splice(0).length
    }
    assert.equal(flood(), 100)
    for (const pause of [20_000, 60_000, 600_000]) {
      tick(pause)
      // The entry for the repeats that waited is written in the pause, and uses an allowance that came meanwhile.
      assert.equal(written.splice(0).length, 1)
      assert.equal(flood(), pause === 20_000 ? 99 : 100, `${pause}`)
    }
  })

  it('are written within a second of the time at which there is room, with all that came meanwhile', (t) => {
    const { entries, written, tick } = shared(t)
    for (let i = 0; i < 103; i++) entries.add(entry({ status: 400, outcome: 'refused' }))
    assert.equal(written.length, 100)
    tick(1000)
    assert.deepEqual(
      written.slice(100).map(({ repeats }) => repeats),
      [2],
    )
  })

  it('count anew after each entry that was written', (t) => {
    const { entries, written, tick } = shared(t)
    for (const _minute of [1, 2, 3]) {
      for (let i = 0; i < 3; i++) entries.add(entry(LOOKUP))
      tick(60_000)
    }
    assert.deepEqual(
      written.map(({ repeats }) => repeats),
      [undefined, 1, 2, 2],
    )
  })
})

describe('calls that are alike', () => {
  /** Two calls each, and whether they share an allowance. */
  const PAIRS: readonly [boolean, Partial<CallLogEntry>, Partial<CallLogEntry>][] = [
    [true, { path: '/v1/calls/req_1' }, { path: '/v1/calls/req_2' }],
    [true, { path: '/v1/files/f-1/content' }, { path: '/v1/files/f-2' }],
    [true, { path: '/v1/calls' }, { path: '/v1/calls', method: 'HEAD' }],
    [false, { path: '/v1/calls/req_1' }, { path: '/v1/models' }],
    [false, { path: '/v1/models' }, { path: '/admin/models' }],
    [false, { path: '/v1/files' }, { path: '/v1f/iles' }],
    [false, { key: 'one' }, { key: 'other' }],
    [
      true,
      { path: '/api/v3/contents/generations/tasks/t-1' },
      { path: '/api/v3/contents/generations/tasks/t-2' },
    ],
    [false, { path: '/api/v3/contents/generations/tasks' }, { path: '/api/v3/contents/generations/models' }],
  ]
  for (const [alike, one, other] of PAIRS)
    it(`${alike ? 'share' : 'do not share'} their entries: ${JSON.stringify([one, other])}`, (t) => {
      const { entries, written } = shared(t)
      entries.add(entry({ ...LOOKUP, ...one }))
      entries.add(entry({ ...LOOKUP, ...other }))
      assert.equal(written.length, alike ? 1 : 2)
    })

  for (const [key, most] of [
    ['k', 100],
    [null, 50],
  ] as const)
    it(`are counted separately by what refused them, or by their status where nothing did: key ${key}`, (t) => {
      const { entries, written } = shared(t)
      const kinds: Partial<CallLogEntry>[] = [
        { error_code: 'rate_limited', status: 429 },
        { error_code: 'concurrency_limited', status: 429 },
        { error_code: null, status: 404 },
        { error_code: null, status: 405 },
      ]
      for (let i = 0; i < 110; i++)
        for (const kind of kinds) entries.add(entry({ key, outcome: 'refused', ...kind }))
      for (const { error_code: code, status } of kinds) {
        const own = written.filter((each) => each.error_code === code && each.status === status)
        assert.equal(own.length, most, `${code} ${status}`)
      }
      // One code has one allowance, whatever the status.
      entries.add(entry({ key, outcome: 'refused', error_code: 'rate_limited', status: 503 }))
      assert.equal(written.length, 4 * most)
    })
})

describe('the memory of subjects', () => {
  it('is written where there are more than 10,000, of the oldest alone, and not before', (t) => {
    const { entries, written } = shared(t)
    const look = (key: string) => entries.add(entry({ ...LOOKUP, key }))
    for (let i = 0; i < 10_000; i++) {
      look(`k-${i}`)
      look(`k-${i}`)
    }
    assert.equal(written.length, 10_000)
    for (const more of [1, 2, 3]) {
      look(`one more ${more}`)
      assert.equal(written.length, 10_000 + 2 * more)
    }
    look('k-3')
    assert.equal(written.length, 10_006, 'the others are known')
    look('k-2')
    assert.equal(written.length, 10_008, 'it was forgotten')
  })

  it('is given up once a subject has its whole allowance again', (t) => {
    const { entries, written, tick } = shared(t)
    const look = (key: string) => entries.add(entry({ ...LOOKUP, key }))
    look('earlier')
    tick(60_000)
    for (let i = 0; i < 10_000; i++) {
      look(`k-${i}`)
      look(`k-${i}`)
    }
    assert.equal(written.length, 10_001, 'the earlier one takes no room')
  })

  it('is looked at by one timer, which ends with the last subject and with the log', (t) => {
    const { entries, tick } = shared(t)
    const running = new Set<unknown>()
    const set = globalThis.setInterval
    const clear = globalThis.clearInterval
    t.mock.method(globalThis, 'setInterval', (...given: Parameters<typeof set>) => {
      const timer = set(...given)
      running.add(timer)
      return timer
    })
    t.mock.method(globalThis, 'clearInterval', (timer: Parameters<typeof clear>[0]) => {
      running.delete(timer)
      clear(timer)
    })
    for (const _time of [1, 2, 3]) {
      entries.add(entry({ ...LOOKUP, key: 'one' }))
      entries.add(entry({ ...LOOKUP, key: 'other' }))
      assert.equal(running.size, 1)
      tick(60_000)
      assert.equal(running.size, 0)
    }
    for (let i = 0; i < 10_001; i++) entries.add(entry({ ...LOOKUP, key: `k-${i}` }))
    assert.equal(running.size, 1)
    entries.close()
    assert.equal(running.size, 0)
  })

  it('is written once: at the end nothing is written again', (t) => {
    const { entries, written, tick } = shared(t)
    entries.close()
    for (let i = 0; i < 3; i++) entries.add(entry(LOOKUP))
    entries.close()
    assert.deepEqual(
      written.map(({ repeats }) => repeats),
      [undefined, 1],
    )
    entries.close()
    tick(120_000)
    assert.equal(written.length, 2)
  })
})
