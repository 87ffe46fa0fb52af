import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import type { Limit, Verdict } from '../../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const NOW = 1_800_000_000_000
const MONTH_MS = 31 * 86_400_000
const PREFIX = 'gateway:{limits}:'

/** A wait as Redis has it. Times are milliseconds from now. */
interface Noted {
  since: number
  told: number
  until: number
  pardons?: number
  slotDue?: number
  earlyAt?: number
  /** Whether the sender asked too early before. */
  prolonged?: '0' | '1'
}
const TIMES = ['since', 'told', 'until', 'slotDue', 'earlyAt']

describe('the wait of a sender in Redis, to the millisecond', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  let store: RedisLimitStore
  let subjects = 0
  const cleanUp = cleaningUp()
  before(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client()
    store = new RedisLimitStore({ redis, timeoutMs: 5000, now: () => NOW })
  })

  /** A limit whose subject is the sender too, and which refused it before if it waits. */
  async function sender(noted?: Noted, max = 5): Promise<Limit> {
    const rpm = limit('rpm', `s${++subjects}`, max)
    if (!noted) return rpm
    const fields = Object.entries(noted).map(([name, value]) => [
      name,
      TIMES.includes(name) ? NOW + Number(value) : value,
    ])
    const wait = `${PREFIX}wait:${rpm.subject}`
    await redis.hset(wait, { by: PREFIX + rpm.key, ...Object.fromEntries(fields) })
    await redis.pexpire(wait, 30_000)
    return rpm
  }
  const ask = (limits: readonly Limit[], windowMs = 60_000): Promise<Verdict> =>
    store.admit(demand(limits, { sender: (limits[0] as Limit).subject, windowMs }))
  /** What is noted of the wait now, as it is given above, but for the limit that it belongs to. */
  async function notedOf({ subject }: Limit): Promise<Record<string, number | string>> {
    const { by: _, most: __, ...fields } = await redis.hgetall(`${PREFIX}wait:${subject}`)
    const entries = Object.entries(fields).map(([name, value]) => [
      name,
      TIMES.includes(name) ? Number(value) - NOW : name === 'prolonged' ? value : Number(value),
    ])
    return Object.fromEntries(entries)
  }

  type Owing = [what: string, noted: Noted, waitMs: number, windowMs?: number]
  const patient: Owing[] = [
    ['holds to its last millisecond', { since: -9, told: -1, until: 1 }, 1],
    ['may be a minute', { since: -9, told: -1, until: 60_000 }, 60_000],
    ['may be a longer window', { since: -9, told: -1, until: 99_000 }, 99_000, 99_000],
    ['stays in the second after its beginning', { since: -1000, told: 20_000, until: 30_000 }, 30_000],
    ['stays from the time that was told', { since: -5000, told: 0, until: 30_000 }, 30_000],
    ['stays for a pardon', { since: -5000, told: 9000, until: 30_000, pardons: 1 }, 30_000],
    ['stays for a slot due', { since: -5000, told: 9000, until: 30_000, slotDue: 1000 }, 30_000],
    ['stays a second after a slot', { since: -5000, told: 9000, until: 30_000, slotDue: -1000 }, 30_000],
    ['is no older for a slot', { since: -1000, told: 9000, until: 30_000, slotDue: -5000 }, 30_000],
  ]
  const early: Owing[] = [
    ['grows after its first second', { since: -1001, told: 20_000, until: 30_000 }, 31_000],
    ['grows until the time that was told', { since: -5000, told: 1, until: 30_000 }, 31_000],
    ['grows with no pardon left', { since: -5000, told: 9000, until: 30_000, pardons: 0 }, 31_000],
    ['grows despite a later slot', { since: -5000, told: 9000, until: 30_000, slotDue: 1001 }, 31_000],
    ['grows a second after a slot', { since: -5000, told: 9000, until: 30_000, slotDue: -1001 }, 31_000],
    ['grows to a minute', { since: -5000, told: 9000, until: 59_400 }, 60_000],
    ['grows no further', { since: -5000, told: 9000, until: 60_000 }, 60_000],
    ['never shrinks to that', { since: -5000, told: 9000, until: 90_000 }, 90_000, 99_000],
  ]
  const owing = [
    ...patient.map((row) => ({ row, isEarly: false })),
    ...early.map((row) => ({ row, isEarly: true })),
  ]
  for (const {
    row: [what, noted, waitMs, windowMs],
    isEarly,
  } of owing)
    it(`of one that asked early ${what}`, async () => {
      const rpm = await sender({ prolonged: '1', ...noted })
      const before = await notedOf(rpm)
      const verdict = await ask([rpm], windowMs)
      assert.deepEqual([verdict.refusedBy, verdict.waitMs, verdict.counts[0]?.used], [rpm, waitMs, 0])
      const left = await redis.pttl(`${PREFIX}wait:${rpm.subject}`)
      assert.ok(left <= waitMs && left > waitMs - 2000, `${left} ms`)
      if (left <= 0) return
      const change = { until: waitMs, pardons: 0, ...(isEarly && { earlyAt: 0 }) }
      assert.deepEqual(await notedOf(rpm), { ...before, ...change })
    })

  const over: [what: string, noted: Noted, windowMs?: number][] = [
    ['ends in time', { since: -9, told: -1, until: 0 }],
    ['of more than a minute is from another clock', { since: -9, told: -1, until: 60_001 }],
    ['of more than a longer window is, too', { since: -9, told: -1, until: 99_001 }, 99_000],
  ]
  for (const [what, noted, windowMs] of over)
    it(`of one that asked early ${what}`, async () => {
      const rpm = await sender({ prolonged: '1', ...noted })
      const before = await notedOf(rpm)
      assert.equal((await ask([rpm], windowMs)).refusedBy, undefined)
      assert.deepEqual(await notedOf(rpm), before)
    })

  const ended: [what: string, calls: number, noted: Noted, change: Partial<Noted>][] = [
    ['counts half a second after the beginning', 2, { since: -500, told: 9, until: 9 }, { pardons: 2 }],
    ['counts beside others', 2, { since: -500, told: 9, until: 9, pardons: 3 }, { pardons: 5 }],
    ['does not count before', 2, { since: -499, told: 9, until: 9 }, {}],
    ['counts to the time that was told', 1, { since: -900, told: 1, until: 9 }, { pardons: 1 }],
    ['does not count from then on', 1, { since: -900, told: 0, until: 9 }, {}],
    ['counts in the longest window', 1, { since: -900, told: 9, until: MONTH_MS }, { pardons: 1 }],
    ['does not count in one from another clock', 1, { since: -900, told: 9, until: MONTH_MS + 1 }, {}],
    [
      'takes a penalty back that is 250 ms old',
      2,
      { since: -5000, told: 9000, until: 30_000, earlyAt: -250 },
      { pardons: 1, until: 29_000 },
    ],
    [
      'takes none back that is older',
      2,
      { since: -5000, told: 9000, until: 30_000, earlyAt: -251 },
      { pardons: 2, earlyAt: -251 },
    ],
    [
      'takes back no more than there is',
      1,
      { since: -5000, told: 9000, until: 9400, earlyAt: 0 },
      { pardons: 0, until: 9000 },
    ],
  ]
  for (const [what, calls, noted, change] of ended)
    it(`and a call that ends ${what}`, async () => {
      const rpm = await sender(noted)
      for (let i = 0; i < calls; i++) store.ended(rpm.subject)
      await store.close()
      const { earlyAt: _, ...rest } = noted
      assert.deepEqual(await notedOf(rpm), { ...rest, ...change })
    })

  const refused: [
    what: string,
    noted: Noted | undefined,
    leftMs: number,
    after: Partial<Noted>,
    windowMs?: number,
  ][] = [
    ['begins for one that did not wait', undefined, 30_000, { since: 0, prolonged: '0' }],
    [
      'keeps the time that was told first',
      { since: -900, told: 5000, until: 6000 },
      30_000,
      { since: -900, told: 5000, prolonged: '0' },
    ],
    [
      'begins again at the time that was told',
      { since: -9000, told: 0, until: 6000, pardons: 3 },
      30_000,
      { since: 0, prolonged: '0', pardons: 0 },
    ],
    [
      'grows by a second from the later of both ends',
      { since: -9000, told: 40_000, until: 40_000 },
      30_000,
      { since: -9000, until: 41_000, prolonged: '1', earlyAt: 0 },
    ],
    [
      'of a minute does not grow',
      { since: -9000, told: 20_000, until: 60_000 },
      30_000,
      { since: -9000, told: 20_000, prolonged: '0', earlyAt: 0 },
    ],
    [
      'of a longer window does not grow',
      { since: -9000, told: 40_000, until: 40_000 },
      90_000,
      { since: -9000, told: 40_000, prolonged: '0', earlyAt: 0 },
      99_000,
    ],
  ]
  for (const [what, noted, leftMs, after, windowMs] of refused)
    it(`and one that is refused: it ${what}`, async () => {
      const rpm = await sender(noted)
      await redis.set(PREFIX + rpm.key, 5, 'PX', leftMs)
      const { refusedBy, waitMs } = await ask([rpm], windowMs)
      assert.deepEqual(refusedBy, rpm)
      const { told, until, ...now } = await notedOf(rpm)
      assert.equal(until, waitMs)
      if (after.until === undefined) assert.ok(waitMs > leftMs - 2000 && waitMs <= leftMs, `${waitMs}`)
      if (after.told === undefined) assert.ok(Number(told) > leftMs - 2000 && Number(told) <= leftMs)
      assert.deepEqual({ ...now, until, told }, { pardons: 0, until: waitMs, told, ...after })
    })

  const standing: [what: string, noted: Noted | undefined, restMs: number, pardons?: number][] = [
    ['is told to one that is admitted meanwhile', { since: -9, told: 7000, until: 9000 }, 7000],
    ['is not told after its time', { since: -9000, told: -1, until: 9000 }, 0],
    ['is not told after its end', { since: -9000, told: 7000, until: 0 }, 0],
    ['has a pardon less for it', { since: -9, told: 7000, until: 9000, pardons: 2 }, 7000, 1],
    ['never has less than no pardons', { since: -9, told: 7000, until: 9000, pardons: 0 }, 7000, 0],
    ['does not begin for one that is admitted', undefined, 0],
  ]
  for (const [what, noted, restMs, pardons] of standing)
    it(`${what}`, async () => {
      const rpm = await sender(noted)
      const before = await notedOf(rpm)
      const verdict = await ask([rpm])
      assert.deepEqual([verdict.refusedBy, verdict.waitMs], [undefined, restMs])
      assert.deepEqual(await notedOf(rpm), { ...before, ...(pardons !== undefined && { pardons }) })
    })

  it('of one that was refused by another limit is not told', async () => {
    const [rpm, other] = [await sender({ since: -9, told: 7000, until: 9000 }), limit('rpm', 'other', 5)]
    const verdict = await store.admit(demand([other], { sender: rpm.subject }))
    assert.deepEqual([verdict.refusedBy, verdict.waitMs], [undefined, 0])
  })

  it('that is refused a slot lasts until it may come back for it, and no less than before', async () => {
    const slot = limit('concurrency', 'full', 1)
    await store.admit(demand([slot]))
    for (const noted of [undefined, { since: -9, told: 7000, until: 9000 }]) {
      const rpm = await sender(noted)
      const { refusedBy, waitMs } = await ask([rpm, slot])
      assert.deepEqual([refusedBy, waitMs], [slot, 1000])
      assert.deepEqual(await notedOf(rpm), { ...noted, slotDue: 1000 })
      const left = await redis.pttl(`${PREFIX}wait:${rpm.subject}`)
      assert.ok(noted ? left > 20_000 : left > 1500 && left <= 2000, `${left} ms`)
      assert.equal(await redis.exists(PREFIX + rpm.key), 0, 'nothing is counted')
    }
    await store.admit(demand([slot], { sender: 'slots alone' }))
    assert.equal(await redis.exists(`${PREFIX}wait:slots alone`), 0)
  })
})
