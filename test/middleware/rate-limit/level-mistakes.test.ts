import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ipSubject, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'

describe('a level of rateLimit', () => {
  for (const [wrong, told] of [
    [7, /^rateLimit: "levels\[0\]" must be a level, such as .*, not the number 7$/],
    [null, /^rateLimit: "levels\[0\]" must be a level, such as .*, not null$/],
    [
      { by: () => 'x', rpm: 1 },
      /^rateLimit: "levels\[0\]": "name" must be a string that is not empty, not undefined$/,
    ],
    [{ name: '', by: () => 'x', rpm: 1 }, /"name" must be a string that is not empty, not an empty string$/],
    [
      { name: 'a', rpm: 1 },
      /^rateLimit: "levels\[0\]": "by" must be a function of the request .*, not undefined$/,
    ],
    [
      { name: 'a', by: 'ip', rpm: 1 },
      /"by" must be a function of the request that returns the subject.*not a string/,
    ],
    [
      { name: 'a', by: ipSubject, rpm: 1 },
      /"levels\[0\]": "by" is ipSubject itself; call it: by: ipSubject\(\)$/,
    ],
    [
      { name: 'a', by: () => 'x', tokens: '60' },
      /"tokens" must be a number from 0 up, null .*, not a string$/,
    ],
    [{ name: 'a', by: () => 'x', rpm: '60' }, /"rpm" must be a number from 0 up, null .*, not a string$/],
    [{ name: 'a', by: () => 'x', tpm: -1 }, /"tpm" must be a number from 0 up.*, not the number -1$/],
    [{ name: 'a', by: () => 'x', concurrency: {} }, /"concurrency" must be .*, not an object$/],
    [{ name: 'a', by: () => 'x', rmp: 60 }, /there is no option "rmp"; did you mean "rpm"\?/],
    [
      { name: 'a', by: () => 'x' },
      /"levels\[0\]" limits nothing; give it "requests", "tokens" or "concurrency"/,
    ],
  ] as const) {
    it(`is refused: ${String(told)}`, () => {
      assert.throws(() => rateLimit({ levels: [wrong] as never }), {
        name: 'TypeError',
        message: told,
      })
    })
  }
})
