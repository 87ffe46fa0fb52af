import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { formatAmount, isAmount, NANOS_PER_UNIT, parseAmount } from '../../../lib/core/catalog/index.ts'

describe('an amount of money', () => {
  it('is written as it was read, without trailing zeros', () => {
    const most = 10n ** 21n - 1n
    fc.assert(
      fc.property(fc.bigInt({ min: -most, max: most }), (nanos) => {
        const text = formatAmount(nanos)
        assert.equal(parseAmount(text), nanos)
        assert.match(text, /^-?\d+(\.\d*[1-9])?$/)
      }),
    )
  })

  it('is the decimal in the text, to the nano-unit', () => {
    const examples: [text: string, nanos: bigint, written: string][] = [
      ['0.15', 150_000_000n, '0.15'],
      ['12.50', 12_500_000_000n, '12.5'],
      ['0.000000001', 1n, '0.000000001'],
      ['-0.5', -500_000_000n, '-0.5'],
      ['-0', 0n, '0'],
      ['007', 7n * NANOS_PER_UNIT, '7'],
      ['999999999999.999999999', 10n ** 21n - 1n, '999999999999.999999999'],
    ]
    for (const [text, nanos, written] of examples) {
      assert.equal(parseAmount(text), nanos)
      assert.equal(formatAmount(nanos), written)
    }
  })

  it('adds up exactly where floating point does not', () => {
    assert.equal(formatAmount(parseAmount('0.1') + parseAmount('0.2')), '0.3')
  })

  it('is not read from any other text', () => {
    for (const text of [
      '',
      '.5',
      '5.',
      '1e3',
      '+1',
      ' 1',
      '1 ',
      '1,5',
      '0x1',
      '--1',
      '1.0000000001',
      '1'.repeat(13),
      '١',
      '1\n',
    ]) {
      assert.equal(isAmount(text), false, text)
      assert.throws(() => parseAmount(text), RangeError)
    }
    assert.throws(() => parseAmount('9'.repeat(20)), /at most 12 digits and 9 decimal places/)
  })
})
