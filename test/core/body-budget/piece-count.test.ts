import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PieceCount } from '../../../lib/core/body-budget/index.ts'

describe('the pieces of a body', () => {
  const added = (pieces: number, bytes: number) => {
    const count = new PieceCount()
    let refusal: ReturnType<PieceCount['add']>
    for (let i = 0; i < pieces; i++) refusal = count.add(bytes)
    return refusal
  }

  it('are 4096 of any size, and more only of 32 bytes on average', () => {
    assert.deepEqual([added(4096, 0), added(4097, 32), added(10_000, 33)], [undefined, undefined, undefined])
    const refusal = added(4097, 31)
    assert.equal(refusal?.code, 'invalid_request')
    assert.match(String(refusal?.message), /at least 32 bytes in each chunk/)
    const large = new PieceCount()
    large.add(32 * 4097)
    for (let i = 1; i < 4097; i++) assert.equal(large.add(0), undefined)
    assert.equal(large.add(0)?.code, 'invalid_request')
  })
})
