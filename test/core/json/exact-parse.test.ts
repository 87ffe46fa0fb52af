import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseExactly, parseUnambiguous } from '../../../lib/core/json/index.ts'

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
      { numRuns: 5000 },
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
      /stands twice/,
    )
  })
})
