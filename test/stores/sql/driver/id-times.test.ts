import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { FIRST_ID, firstIdOf, placeOf, timeOfId } from '../../../../lib/stores/sql/driver/id-times.ts'

const NOON = Date.UTC(2026, 10, 24, 12)
const LAST = 32 ** 10 - 1

describe('the time of a request id', () => {
  it('is that at which it was made, in each of its ten characters', () => {
    for (const time of [0, 1, 31, 32, 1023, NOON, NOON + 1, LAST]) {
      assert.equal(timeOfId(newRequestId(time)), time)
      assert.equal(timeOfId(newRequestId(time).slice(0, 14)), time)
    }
  })

  it('is none where there is none', () => {
    const id = newRequestId(NOON)
    const others = ['', 'req_', id.slice(0, 13), id.slice(1), `x${id.slice(1)}`, `req_${'u'.repeat(10)}`]
    for (const other of [...others, `req_${'A'.repeat(10)}`, `req_012345678-`])
      assert.equal(timeOfId(other), undefined, other)
  })

  it('sorts the least id of a time before all of that time, and behind all before', () => {
    for (const time of [0, 1, 31, NOON]) {
      const first = firstIdOf(time)
      assert.equal(first.length, 14)
      assert.ok(first < newRequestId(time))
      if (time > 0) assert.ok(first > newRequestId(time - 1))
    }
  })

  it('is that of its place among the others for an id of another kind', () => {
    for (const time of [0, 1, 31, NOON, LAST]) assert.equal(placeOf(newRequestId(time)), time)
    assert.equal(placeOf(`${firstIdOf(NOON).slice(0, 13)}-`), NOON - (NOON % 32) - 1)
    assert.equal(placeOf(firstIdOf(NOON).slice(0, 13)), NOON - (NOON % 32) - 1)
    assert.equal(placeOf(`${firstIdOf(NOON).slice(0, 13)}~`), NOON - (NOON % 32) + 31)
    assert.deepEqual(['', 'order', 'req_', 'zz'].map(placeOf), [0, 0, 0, LAST])
    assert.ok('req_0001' < FIRST_ID && FIRST_ID < newRequestId())
  })

  it('is a whole number, within the range of an id', () => {
    assert.equal(firstIdOf(NOON - 0.5), firstIdOf(NOON))
    assert.equal(firstIdOf(-5), firstIdOf(0))
    assert.equal(firstIdOf(2 * LAST), firstIdOf(LAST))
    assert.equal(firstIdOf(LAST), `req_${'z'.repeat(10)}`)
  })
})
