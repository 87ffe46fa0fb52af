import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MAX_AMOUNT } from '../../lib/core/catalog/money.ts'
import { ledgerOf, units } from './support/faulty-ledger.ts'
import { PoolProcess } from './support/pool-process.ts'

it('a call can be charged at most what brings its account below zero by its hold', async () => {
  const process = new PoolProcess(ledgerOf('10'))
  const first = await process.admitted(units(4))
  // 6 are left beside it.
  assert.equal(first.most, units(6 + 4 + 4))
  const second = await process.admitted(units(1))
  assert.equal(second.most, units(5 + 1 + 1))
  assert.equal(first.most, units(5 + 4 + 4))
  first.release()
  assert.equal(second.most, units(9 + 1 + 1))
})

it('a call on an account without limits can be charged as much as the ledger can store', async () => {
  const process = new PoolProcess(ledgerOf(undefined))
  const held = await process.admitted(units(4))
  assert.equal(held.most, MAX_AMOUNT)
})
