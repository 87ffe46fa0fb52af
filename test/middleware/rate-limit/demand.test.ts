import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Request } from 'express'
import type { Call } from '../../../lib/core/call/index.ts'
import { demandOf, impossibleLimit, SubjectsOfLevel } from '../../../lib/middleware/rate-limit/demand.ts'
import { accountLevel, keyLevel, type LimitLevel } from '../../../lib/middleware/rate-limit/index.ts'
import { durationText, setLimitHeaders, timeText } from '../../../lib/middleware/rate-limit/limit-headers.ts'
import { demand, limit } from './demands.ts'

const REQ = {} as Request
const CALL = {
  id: 'req_1',
  principal: {
    keyId: 'k1',
    accountId: 'a1',
    keyLimits: { rpm: 1, tpm: 2 },
    accountLimits: { rpm: 3, tpm: 4, concurrency: 5 },
  },
} as unknown as Call

const planOf = (levels: readonly LimitLevel[], tokens = 7) => ({
  levels: levels.map((level) => ({ level, subjects: new SubjectsOfLevel(level.name) })),
  tokens: () => tokens,
  windowMs: 60_000,
})
const asked = (levels: readonly LimitLevel[], tokens?: number) => demandOf(planOf(levels, tokens), REQ, CALL)

describe('what a request asks of its limits', () => {
  it('are those of its key and its account, in this order, in the name of both', () => {
    assert.deepEqual(asked([keyLevel, accountLevel]), {
      id: 'req_1',
      sender: 'key:k1 account:a1',
      windowMs: 60_000,
      charges: [
        { kind: 'rpm', level: 'key', subject: 'k1', max: 1, cost: 1, key: 'rpm:key:k1' },
        { kind: 'tpm', level: 'key', subject: 'k1', max: 2, cost: 7, key: 'tpm:key:k1' },
        { kind: 'rpm', level: 'account', subject: 'a1', max: 3, cost: 1, key: 'rpm:account:a1' },
        { kind: 'tpm', level: 'account', subject: 'a1', max: 4, cost: 7, key: 'tpm:account:a1' },
      ],
      slots: [
        {
          kind: 'concurrency',
          level: 'account',
          subject: 'a1',
          max: 5,
          cost: 1,
          key: 'concurrency:account:a1',
        },
      ],
    })
  })

  it('is nothing where no level applies, or none has a limit', () => {
    assert.equal(asked([]), undefined)
    for (const subject of [null, undefined])
      assert.equal(asked([{ name: 'ip', by: () => subject, rpm: 1 }]), undefined)
    assert.equal(asked([{ name: 'ip', by: () => 'x' }]), undefined)
    const unlimited = {
      name: 'ip',
      by: () => 'x',
      rpm: null,
      tpm: Number.POSITIVE_INFINITY,
      concurrency: () => undefined,
    }
    assert.equal(asked([unlimited]), undefined)
  })

  it('is a slot alone, and slots of several levels', () => {
    const slot = (name: string): LimitLevel => ({ name, by: () => 'x', concurrency: 1 })
    const found = asked([slot('a'), slot('b')])
    assert.deepEqual(found?.charges, [])
    assert.deepEqual(
      found?.slots.map(({ key }) => key),
      ['concurrency:a:x', 'concurrency:b:x'],
    )
  })

  it('has the subjects of all levels that apply as its sender, with limits or without', () => {
    const levels = [
      { name: 'none', by: () => null, rpm: 1 },
      { name: 'first', by: () => 'x' },
      { name: 'second', by: () => 'y', rpm: 1 },
    ]
    assert.equal(asked(levels)?.sender, 'first:x second:y')
    const third = { name: 'third', by: () => 'z' }
    assert.equal(asked([...levels, third])?.sender, 'first:x second:y third:z')
  })

  it('names a long subject by its beginning and its hash, so that no caller fills the memory', () => {
    const names = ['a', 'b'].map((last) => {
      const found = asked([{ name: 'user', by: () => 'x'.repeat(100_000) + last, rpm: 1 }])
      return [found?.sender, found?.charges[0]?.key, found?.charges[0]?.subject]
    })
    assert.equal(new Set(names.flat()).size, 6)
    for (const name of names.flat()) assert.ok((name as string).length < 200)
  })

  it('asks for its tokens once, and only where some level limits them', () => {
    let times = 0
    const plan = {
      ...planOf([keyLevel, accountLevel]),
      tokens: () => {
        times++
        return 6.2
      },
    }
    assert.deepEqual(
      demandOf(plan, REQ, CALL)?.charges.map(({ cost }) => cost),
      [1, 7, 1, 7],
      'whole tokens, rounded up',
    )
    assert.equal(times, 1)
    demandOf({ ...plan, levels: planOf([{ name: 'ip', by: () => 'x', rpm: 1 }]).levels }, REQ, CALL)
    assert.equal(times, 1)
  })

  it('is as the limits are now, whatever they were before', () => {
    const limits = { rpm: 5, tpm: 10 }
    const plan = {
      ...planOf([{ name: 'ip', by: () => 'x', rpm: () => limits.rpm, tpm: () => limits.tpm }]),
      tokens: () => limits.tpm,
    }
    const first = demandOf(plan, REQ, CALL)
    limits.rpm = 6
    const second = demandOf(plan, REQ, CALL)
    assert.deepEqual(
      second?.charges.map(({ max }) => max),
      [6, 10],
    )
    assert.equal(second?.charges[1], first?.charges[1], 'what has not changed is not made again')
    limits.tpm = 9
    assert.deepEqual(
      demandOf(plan, REQ, CALL)?.charges.map(({ cost }) => cost),
      [1, 9],
    )
  })

  it('is an error where a limit or the tokens are no number', () => {
    for (const rpm of [-1, Number.NaN, '5', {}])
      assert.throws(
        () => asked([{ name: 'ip', by: () => 'x', rpm: rpm as number }]),
        /a limit must be a number from 0 up/,
      )
    for (const tokens of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
      assert.throws(() => asked([keyLevel], tokens), /"tokens" must return a number from 0 up/)
    assert.equal(asked([keyLevel], 0)?.charges[1]?.cost, 0)
    assert.equal(asked([{ name: 'ip', by: () => 'x', rpm: 0 }])?.charges[0]?.max, 0)
  })

  it('can never pass where it costs more than a limit has', () => {
    const fits = [limit('rpm', 'x', 1), limit('tpm', 'x', 7, 7)]
    const large = limit('tpm', 'y', 6, 7)
    const none = limit('concurrency', 'z', 0)
    assert.equal(impossibleLimit(demand(fits)), undefined)
    assert.equal(impossibleLimit(demand([...fits, large, none])), large)
    assert.equal(impossibleLimit(demand([...fits, limit('concurrency', 'x', 1), none])), none)
  })
})

describe('the headers of limits', () => {
  const counts = (...used: number[]) => used.map((each, i) => ({ used: each, resetMs: 1000 * (i + 1) }))
  const charges = [
    limit('rpm', 'a', 10),
    limit('tpm', 'a', 100),
    limit('rpm', 'b', 20),
    limit('tpm', 'b', 50),
  ]

  const headersOf = (
    style: 'openai' | 'anthropic' | 'ietf' | 'none',
    used: number[],
    refusedBy?: (typeof charges)[number],
  ) => {
    const set: Record<string, string> = {}
    const verdict = { refusedBy, waitMs: 0, counts: counts(...used) }
    setLimitHeaders(style, demand(charges), verdict, { setHeader: (name, value) => (set[name] = value) })
    return set
  }

  it('tell the limit with the least left, or the one that refused', () => {
    const names = ['limit', 'remaining', 'reset']
    const told = (set: Record<string, string>, kind: string) =>
      names.map((name) => set[`x-ratelimit-${name}-${kind}`])
    const least = headersOf('openai', [3, 10, 14, 20])
    assert.deepEqual(told(least, 'requests'), ['20', '6', '3s'])
    assert.deepEqual(told(least, 'tokens'), ['50', '30', '4s'])
    const refused = headersOf('openai', [3, 10, 14, 20.5], charges[0])
    assert.deepEqual(told(refused, 'requests'), ['10', '7', '1s'])
    assert.deepEqual(told(refused, 'tokens'), ['50', '29', '4s'])
    const same = headersOf('openai', [3, 60, 13, 60])
    assert.deepEqual(told(same, 'requests'), ['10', '7', '1s'], 'of two alike the first')
    assert.equal(same['x-ratelimit-remaining-tokens'], '0', 'never less than nothing')
  })

  it('have the names and times of the protocol', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T00:00:00.001Z') })
    assert.deepEqual(headersOf('anthropic', [3, 10, 14, 20]), {
      'anthropic-ratelimit-requests-limit': '20',
      'anthropic-ratelimit-requests-remaining': '6',
      'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:04Z',
      'anthropic-ratelimit-tokens-limit': '50',
      'anthropic-ratelimit-tokens-remaining': '30',
      'anthropic-ratelimit-tokens-reset': '2026-01-01T00:00:05Z',
    })
  })

  it('are none of a kind that has no limit', () => {
    const set: Record<string, string> = {}
    const only = demand([limit('rpm', 'a', 10)])
    const target = { setHeader: (name: string, value: string) => (set[name] = value) }
    setLimitHeaders('openai', only, { refusedBy: undefined, waitMs: 0, counts: counts(1) }, target)
    assert.deepEqual(Object.keys(set).sort(), [
      'x-ratelimit-limit-requests',
      'x-ratelimit-remaining-requests',
      'x-ratelimit-reset-requests',
    ])
  })

  it('write durations and times, rounded up', () => {
    const durations: [number, string][] = [
      [-5, '0ms'],
      [0, '0ms'],
      [0.2, '1ms'],
      [999, '999ms'],
      [999.5, '1s'],
      [1000, '1s'],
      [1001, '2s'],
      [59_001, '1m0s'],
      [60_000, '1m0s'],
      [61_000, '1m1s'],
      [150_000, '2m30s'],
    ]
    for (const [ms, text] of durations) assert.equal(durationText(ms), text)
    assert.equal(timeText(1000), '1970-01-01T00:00:01Z')
    assert.equal(timeText(1001), '1970-01-01T00:00:02Z')
    assert.equal(timeText(1000), '1970-01-01T00:00:01Z')
  })
})
