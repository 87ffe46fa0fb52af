import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isAddressOrBlock } from '../../../lib/core/catalog/index.ts'

for (const text of ['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '2001:db8::1', '2001:db8::/32', '::ffff:10.0.0.1'])
  it(`${text} is an address or a block`, () => {
    assert.equal(isAddressOrBlock(text), true)
  })

// C reads 10/8 as 0.0.0.10/8, a leading zero as octal, and a number as a whole address.
for (const text of [
  '10/8',
  '10.0.0',
  '10.0/16',
  '010.0.0.1',
  '010.0.0.0/8',
  '0x7f.1',
  '1',
  '10.0.0.0/33',
  '10.0.0.0/',
  '',
])
  it(`"${text}", which people and C read differently, is neither an address nor a block`, () => {
    assert.equal(isAddressOrBlock(text), false)
  })
