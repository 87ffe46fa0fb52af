import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { type Admission, windowsOf } from './windows.ts'

const LIMIT = 20

/** One caller's request: how long after the one before, until the limiter, until somebody sees it, and until the head. */
const request = fc.record({
  gapMs: fc.oneof(
    { weight: 40, arbitrary: fc.integer({ min: 0, max: 900 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 70_000 }) },
  ),
  limiterMs: fc.integer({ min: 0, max: 4000 }),
  seenMs: fc.integer({ min: 0, max: 8000 }),
  headMs: fc.integer({ min: 0, max: 8000 }),
  tells: fc.integer({ min: 0, max: 9 }).map((n) => n < 9),
})

interface Request {
  readonly gapMs: number
  readonly limiterMs: number
  readonly seenMs: number
  readonly headMs: number
  readonly tells: boolean
}

/** Returns the admissions of a fixed window, as seen from outside; `beyond` more in its last window. */
function seenOf(requests: readonly Request[], limit: number, beyond = 0): Admission[] {
  let sentAt = 1_000_000
  const asked = requests.map((each) => {
    sentAt += each.gapMs
    return { ...each, sentAt, countedAt: sentAt + each.limiterMs }
  })
  asked.sort((one, other) => one.countedAt - other.countedAt)
  let endsAt = 0
  let used = 0
  const admitted: Admission[] = []
  const admit = ({ sentAt: sent, countedAt, seenMs, headMs, tells }: (typeof asked)[number]) => {
    const left = Math.ceil((endsAt - countedAt) / 1000) * 1000
    const at = countedAt + seenMs
    const windowEnds = { from: sent + left - 1000, to: countedAt + headMs + left }
    admitted.push({
      sentAt: sent,
      at,
      until: at,
      cost: 1,
      local: false,
      windowEnds: tells ? windowEnds : undefined,
    })
  }
  for (const each of asked) {
    if (each.countedAt >= endsAt) {
      endsAt = each.countedAt + 60_000
      used = 0
    }
    if (used++ < limit) admit(each)
  }
  const last = asked.at(-1)
  for (let i = 0; last && i < beyond; i++)
    admit({ ...last, countedAt: endsAt - 30_000, sentAt: endsAt - 30_000, tells: true })
  return admitted.sort((one, other) => one.at - other.at)
}

it('no exact limit is taken for exceeded, however late its calls are seen', () => {
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 400, size: 'max' }), (requests) => {
      const admitted = seenOf(requests, LIMIT)
      const windows = windowsOf(admitted, LIMIT)
      assert.ok(windows.every(({ used }) => used <= LIMIT))
      assert.equal(
        windows.reduce((sum, { used }) => sum + used, 0),
        admitted.length,
      )
    }),
  )
})

it('one more than the limit shows in a full window', () => {
  // All are in one window, and report when it ends.
  const burst = fc
    .array(request, { minLength: LIMIT + 5, maxLength: 60 })
    .map((requests) => requests.map((each) => ({ ...each, gapMs: each.gapMs % 300, tells: true })))
  fc.assert(
    fc.property(burst, fc.integer({ min: 1, max: 5 }), (requests, beyond) => {
      const windows = windowsOf(seenOf(requests, LIMIT, beyond), LIMIT)
      assert.equal(Math.max(...windows.map(({ used }) => used)), LIMIT + beyond)
    }),
  )
})

it('calls that another counter let through in a window are added to it', () => {
  const at = (sentAt: number, endsAt: number): Admission => ({
    sentAt,
    at: sentAt + 5,
    until: sentAt + 5,
    cost: 1,
    local: false,
    windowEnds: { from: endsAt - 500, to: endsAt + 500 },
  })
  const admitted = [at(0, 60_000), at(10, 60_000), at(30_000, 90_000), at(61_000, 121_000)]
  assert.deepEqual(
    windowsOf(admitted, LIMIT).map(({ used }) => used),
    [3, 1],
  )
})
