import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import type { Books } from './books.ts'
import type { Send, Wanted } from './exchange.ts'
import { shareOfMoney } from './money.ts'
import type { ServedAttempt } from './upstream.ts'

const LINES = ['north', 'south', 'west'] as const

const attempt = (i: number, receivedAt: number, line: string): ServedAttempt => ({
  id: `attempt-${i}`,
  line,
  receivedAt,
  fault: undefined,
  finishedAt: receivedAt + 300,
  produced: () => 10,
  cost: () => 100n + BigInt(i),
})

/** A call that was charged what one of its attempts cost; the others were given up, and served all the same. */
function judged(served: readonly ServedAttempt[], by: ServedAttempt, seen: boolean, charged: bigint) {
  const send = {
    id: 'wanted-1.1',
    requestId: seen ? 'req_1' : null,
    sentAt: 1000,
    endedAt: 3000,
    status: seen ? 200 : null,
    sawEnd: seen,
    attemptId: seen ? by.id : undefined,
  } as unknown as Send
  const wanted = { name: 'wanted-1', stream: false, sends: [send] } as unknown as Wanted
  const entry = {
    id: 'req_1',
    outcome: 'completed',
    routing: { attempts: [{ line: by.line, outcome: 'completed' }] },
  } as unknown as CallLogEntry
  const books = {
    charges: new Map([['req_1', charged]]),
    voids: new Map(),
    callsByClientId: new Map([[send.id, entry]]),
  } as unknown as Books
  return shareOfMoney([wanted], new Map([[wanted.name, served]]), books)
}

/** One attempt for each line, in any order and at any time, some of them behind the end of the call. */
const calls = fc.record({
  times: fc.array(fc.integer({ min: 1000, max: 9000 }), { minLength: 3, maxLength: 3 }),
  by: fc.nat({ max: 2 }),
  seen: fc.boolean(),
})

it('a charge is compared with the attempt that was answered, whenever the line received the others', () => {
  fc.assert(
    fc.property(calls, ({ times, by, seen }) => {
      const served = times
        .map((at, i) => attempt(i, at, LINES[i] as string))
        .sort((one, other) => one.receivedAt - other.receivedAt)
      const answered = served.find(({ id }) => id === `attempt-${by}`) as ServedAttempt
      const right = judged(served, answered, seen, answered.cost())
      assert.deepEqual(Object.values(right.broken).flat(), [])
      assert.equal(right.completed.upstream, answered.cost())
      for (const other of served.filter((each) => each !== answered)) {
        const wrong = judged(served, answered, seen, other.cost())
        assert.deepEqual(wrong.broken['differing from the upstream'], ['req_1'])
      }
    }),
  )
})
