import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Demand, Verdict } from '../../../lib/middleware/rate-limit/index.ts'
import { type Asked, LimitBatch, readVerdicts } from '../../../lib/stores/redis/limit-batch.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'

const asked = (demand: Demand): Asked => ({ demand, resolve: () => {}, reject: () => {} })
const listOf = (batch: LimitBatch): unknown[] => JSON.parse(batch.encode('p').args[2] as string)

describe('what one turn of the event loop asks of Redis', () => {
  it('is full with a hundred demands, or a thousand slots and calls that ended', () => {
    const demands = new LimitBatch()
    for (let i = 0; i < 99; i++) demands.asked.push(asked(demand([])))
    assert.equal(demands.full, false)
    demands.asked.push(asked(demand([])))
    assert.equal(demands.full, true)
    const ends = new LimitBatch()
    for (let i = 0; i < 999; i++) {
      if (i % 2 === 0) ends.giveBack('set', `id-${i}`)
      else ends.ended('sender')
    }
    assert.equal(ends.full, false)
    ends.ended('sender')
    assert.equal(ends.full, true)
  })

  it('names each counter, set and sender once, and the place of each by itself', () => {
    const batch = new LimitBatch()
    const [rpm, tpm, slot] = [limit('rpm', 'k', 10), limit('tpm', 'k', 1000, 7), limit('concurrency', 'k', 3)]
    const members = { sender: 'caller', windowMs: 60_000 }
    const [one, two] = [demand([rpm, slot], members), demand([tpm, rpm], members)]
    for (const each of [one, two]) batch.asked.push(asked(each))
    const { keys, args } = batch.encode('p')
    assert.deepEqual(keys, ['p:rpm:key:k', 'p:tpm:key:k', 'p:concurrency:key:k', 'p:wait:caller'])
    assert.deepEqual(args.slice(0, 2), [2, 1])
    assert.deepEqual(JSON.parse(args[2] as string), [
      ...[0, 0, 2],
      ...[one.id, 1, 60_000, 1, 1, 1, 1, 10, 1, 3],
      ...[two.id, 1, 60_000, 2, 0, 2, 7, 1000, 1, 1, 10],
    ])
  })

  it('gives slots back by their set, and counts the calls of a sender that have ended', () => {
    const batch = new LimitBatch()
    for (const [key, id] of [
      ['a', '1'],
      ['b', '2'],
      ['a', '3'],
    ] as const)
      batch.giveBack(key, id)
    for (const sender of ['x', 'y', 'x', 'x']) batch.ended(sender)
    assert.deepEqual(batch.encode('p').keys, ['p:a', 'p:b', 'p:wait:x', 'p:wait:y'])
    assert.deepEqual(listOf(batch), [2, 1, 2, '1', '3', 2, 1, '2', 2, 1, 3, 2, 1, 0])
  })

  it('is told which limit refuses each demand, what is used of each, and how long to wait', () => {
    const [rpm, tpm] = [limit('rpm', 'k', 10), limit('tpm', 'k', 1000)]
    const [slot, other] = [limit('concurrency', 'k', 3), limit('concurrency', 'm', 3)]
    const both = demand([rpm, tpm, slot, other])
    const list = [
      ...[0, 0, 1, 60_000, 2, 59_000],
      ...[2, 500, 3, 58_000, 4, 57_000],
      ...[3, 100, 5, 56_000, 6, 55_000],
      ...[4, 0, 7, 54_000, 8, 53_000],
      ...[1, 700],
      ...[-1, 4, 0, 0],
    ]
    const told: [unknown, Verdict][] = []
    const undecided: [unknown, number][] = []
    const all = [both, both, both, both, demand([slot])].map(asked)
    const broken = asked(demand([rpm]))
    readVerdicts(
      [...all, broken],
      ['1', JSON.stringify(list)],
      (each, verdict) => told.push([each, verdict]),
      (each, place) => undecided.push([each, place]),
    )
    assert.deepEqual(undecided, [[broken, 4]])
    assert.deepEqual(
      told.map(([each]) => each),
      all,
    )
    assert.deepEqual(
      told.map(([, { refusedBy, waitMs }]) => [refusedBy, waitMs]),
      [
        [undefined, 0],
        [tpm, 500],
        [slot, 100],
        [other, 0],
        [slot, 700],
      ],
    )
    assert.deepEqual(
      told.map(([, { counts }]) => counts.map(({ used, resetMs }) => [used, resetMs])),
      [
        [
          [1, 60_000],
          [2, 59_000],
        ],
        [
          [3, 58_000],
          [4, 57_000],
        ],
        [
          [5, 56_000],
          [6, 55_000],
        ],
        [
          [7, 54_000],
          [8, 53_000],
        ],
        [],
      ],
    )
  })
})
