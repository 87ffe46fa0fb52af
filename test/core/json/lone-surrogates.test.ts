// Runs in a process of its own: JSON.parse of Node 24 can take a name with an escape for one in an earlier text.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { withoutLoneSurrogates } from '../../../lib/core/json/index.ts'

const text = fc
  .array(fc.constantFrom('\ud800', '\udc00', '\ud83d\ude00', 'a', '漢', '\\', '"'), { maxLength: 4 })
  .map((parts) => parts.join(''))
/** Without other escapes: V8 may take a member for the one that stood there in an earlier text, if both names have some. */
const name = fc.constantFrom('', 'a', '漢', '__proto__', '\ud800', 'a\udc00', '\ud83d\ude00')
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(text, fc.integer(), fc.constant(null), fc.boolean()),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}))

describe('a parsed text without lone surrogates', () => {
  it('has U+FFFD for each lone surrogate, and is otherwise unchanged', () => {
    fc.assert(
      fc.property(value, (given) => {
        const raw = Buffer.from(JSON.stringify(given))
        const mended = withoutLoneSurrogates(JSON.parse(raw.toString()))
        // Escapes of lone surrogates are the only ones with a d behind their u.
        const plain = raw.toString().replace(/(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g, '$1\ufffd')
        assert.equal(JSON.stringify(mended), JSON.stringify(JSON.parse(plain)))
        if (typeof mended === 'object' && mended !== null)
          assert.ok([Object.prototype, Array.prototype].includes(Object.getPrototypeOf(mended)))
      }),
      { numRuns: 120 },
    )
  })
})
