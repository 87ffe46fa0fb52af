import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { JsonFault, parseExactly, parseUnambiguous } from '../../../lib/core/json/index.ts'
import { doubledTexts } from '../../support/doubled-members.ts'

/** Writes a name plainly, or with all its characters as escapes. */
function written(name: string, isEscaped: boolean): string {
  if (!isEscaped) return JSON.stringify(name)
  const codes = Array.from({ length: name.length }, (_, i) =>
    name.charCodeAt(i).toString(16).padStart(4, '0'),
  )
  return `"${codes.map((code) => `\\u${code}`).join('')}"`
}

const NAMES = ['n', 'a', 'model', 'é', '"', '\n', '\\', '\\u0', '\\u006', '\\u0061', '', '__proto__', '1']
const members = fc.uniqueArray(
  fc.record({ name: fc.constantFrom(...NAMES), isEscaped: fc.boolean(), deep: fc.boolean() }),
  { selector: ({ name }) => name, maxLength: 5 },
)

describe('a text whose names have escapes', () => {
  it('is read as it is, whatever texts were read before', () => {
    fc.assert(
      fc.property(members, (given) => {
        const text = `{${given
          .map(({ name, isEscaped, deep }, i) => {
            const own = written(name, isEscaped)
            return `${own} : ${deep ? `[{${own}:"{:}\\"${i}"},{}]` : i}`
          })
          .join(',')}}`
        const entries = given.map(({ name, deep }, i): [string, unknown] => [
          name,
          deep ? [Object.fromEntries([[name, `{:}"${i}`]]), {}] : i,
        ])
        assert.deepEqual(parseExactly(text), Object.fromEntries(entries), text)
        assert.deepEqual(parseUnambiguous(Buffer.from(text)), Object.fromEntries(entries), text)
      }),
      { numRuns: 400 },
    )
  })

  it('hides no member behind what another caller has sent', () => {
    for (let i = 0; i < 3; i++) {
      parseUnambiguous(Buffer.from('{"model":"m","\\\\":1}'))
      assert.deepEqual(parseUnambiguous(Buffer.from('{"model":"m","\\u006e":100}')), { model: 'm', n: 100 })
    }
    parseUnambiguous(Buffer.from('{"\\\\u006":1}'))
    assert.throws(
      () => parseUnambiguous(Buffer.from('{"\\u006dodel":"dear","model":"cheap"}')),
      /occurs twice/,
    )
  })
})

const parse = (text: string) => parseUnambiguous(Buffer.from(text))

describe('a JSON text that others read, too', () => {
  it('is read as it is, if every object has every member once', () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false, maxDepth: 6 }), fc.nat(3), (text, spaces) => {
        const spaced = JSON.stringify(JSON.parse(text), null, spaces)
        assert.deepEqual(parse(spaced), JSON.parse(spaced))
      }),
      { numRuns: 150 },
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
          for (const text of doubledTexts(value, {}).slice(0, 40)) {
            JSON.parse(text)
            assert.throws(() => parse(text), isRepeated, text)
          }
        },
      ),
      { numRuns: 100 },
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
    assert.throws(() => parse(text), /^Error: A member occurs twice in the same object/)
  })
})

function isRepeated(fault: unknown): boolean {
  return fault instanceof JsonFault && fault.message.includes('occurs twice')
}
