import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { JsonFault, parseUnambiguous } from '../../../lib/core/json/index.ts'
import { doubledTexts } from '../../support/doubled-members.ts'

const parse = (text: string) => parseUnambiguous(Buffer.from(text))

describe('a JSON text that others read, too', () => {
  it('is read as it is, if every object has every member once', () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false, maxDepth: 6 }), fc.nat(3), (text, spaces) => {
        const spaced = JSON.stringify(JSON.parse(text), null, spaces)
        assert.deepEqual(parse(spaced), JSON.parse(spaced))
      }),
      { numRuns: 1000 },
    )
    const odd =
      '{"__proto__":{"a":1},"constructor":1,"":{"":2},"a,\\"b":[{},[],"{\\"a\\":1,"],"1":1,"0":{"a":1}}'
    assert.deepEqual(parse(odd), JSON.parse(odd))
  })

  it('is refused with the name of a member that stands twice, at any depth and however it is written', () => {
    fc.assert(
      fc.property(
        fc.object({ maxDepth: 4, withNullPrototype: false, values: [fc.string(), fc.nat()] }),
        (value) => {
          for (const text of doubledTexts(value, {}).slice(0, 100)) {
            JSON.parse(text)
            assert.throws(() => parse(text), isRepeated, text)
          }
        },
      ),
      { numRuns: 300 },
    )
    for (const [text, name] of [
      ['{"a":1,"a":1}', 'a'],
      ['[{"b":[{"__proto__":1,"__proto__":{}}]}]', '__proto__'],
      ['{"":1,"c":{},"":2}', ''],
      ['{"\\ud83d":1,"\\uD83D":2}', '\ud83d'],
    ] as const)
      assert.throws(
        () => parse(text),
        (fault) => fault instanceof JsonFault && fault.named.param === name,
      )
  })

  it('is refused without a name if it is large', () => {
    const text = `{"a":"${'x'.repeat(70_000)}","b":{"c":1,"c":2}}`
    assert.throws(() => parse(text), /^Error: A member stands twice in the same object/)
  })
})

function isRepeated(fault: unknown): boolean {
  return fault instanceof JsonFault && fault.message.includes('stands twice')
}
