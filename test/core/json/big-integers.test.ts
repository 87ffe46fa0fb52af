import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { keepingIntegers, parseExactly, parseKeepingIntegers } from '../../../lib/core/json/index.ts'

const ID = '1234567890123456789'

const again = (text: string) => JSON.stringify(parseKeepingIntegers(text))

describe('an integer that a number cannot hold', () => {
  it('is written again as it was', () => {
    for (const text of [
      '[-12345678901234567890,9007199254740992,9007199254740993]',
      '{"id":1234567890123456789,"ids":[[9223372036854775807],{"a\\\\b":-9223372036854775808}]}',
      '{"__proto__":12345678901234567890,"é":12345678901234567890}',
    ])
      assert.equal(again(text), text)
    assert.equal(again('{ "id" :\n 12345678901234567890\n}'), '{"id":12345678901234567890}')
  })

  it('is only found outside strings, and other numbers stay numbers', () => {
    const texts = '{"a":"x: 12345678901234567890, \\"b\\":12345678901234567890","c":12345678901234567890}'
    assert.equal(again(texts), texts)
    const others = '[9007199254740991,1234567890.12345678901,12345678901234567890e0,1e400,0.5,{"a":-1}]'
    assert.deepEqual(parseKeepingIntegers(others), JSON.parse(others))
  })

  it('makes no invalid text valid', () => {
    for (const text of [
      '[12345678901234567890',
      '[012345678901234567890]',
      '[--12345678901234567890]',
      '{12345678901234567890:1}',
      '[12345678901234567890x]',
      '[1 12345678901234567890]',
      '[12345678901234567890,\\12345678901234567890]',
    ])
      assert.throws(() => parseKeepingIntegers(text), SyntaxError, text)
  })

  it('changes nothing about any other text', () => {
    fc.assert(
      fc.property(fc.json(), fc.bigInt(), (text, integer) => {
        assert.deepEqual(parseKeepingIntegers(text), parseExactly(text))
        const list = `[${integer},${JSON.stringify(JSON.parse(text))}]`
        assert.equal(again(list), list)
      }),
    )
  })

  it('is found among very many numbers, and in very large texts', () => {
    const list = (count: number, item: string) => `[${Array(count).fill(item).join()}]`
    assert.equal(again(list(1000, ID)), list(1000, ID))
    assert.deepEqual(parseKeepingIntegers(list(1001, ID)), Array(1001).fill(Number(ID)))
    const data = `[${ID},${list(300_000, '1')}]`
    assert.deepEqual(parseKeepingIntegers(data), JSON.parse(data))
    const text = `[${ID},"${'1'.repeat(1_000_000)}"]`
    assert.equal(again(text), text)
  })

  it('is found in bytes that were parsed before', () => {
    const raw = Buffer.from('{"id":12345678901234567890,"text":"\\ud800"}')
    const kept = JSON.stringify(keepingIntegers(JSON.parse(raw.toString()), raw))
    assert.equal(kept, '{"id":12345678901234567890,"text":"\ufffd"}')
    const parsed = {}
    assert.equal(keepingIntegers(parsed, Buffer.from('{"id":"12345678901234567890"}')), parsed)
  })
})
