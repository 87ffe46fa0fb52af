import assert from 'node:assert/strict'
import { it } from 'node:test'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'

const FACTORIES: Readonly<Record<string, (options: never) => unknown>> = { errorEnvelope, unknownPath }

for (const [of, what, given, message] of [
  [
    'errorEnvelope',
    'an unknown option',
    { loger: {} },
    /^errorEnvelope: .* "loger"; did you mean "logger"\?/,
  ],
  ['errorEnvelope', 'a function as logger', { logger() {} }, /^errorEnvelope: "logger" must be /],
  ['errorEnvelope', 'a list', [], /^errorEnvelope: its options must be an object/],
  ['unknownPath', 'any option', { logger: {} }, /^unknownPath: it has no options; leave out "logger"$/],
  ['unknownPath', 'a request', { headers: {}, method: 'GET', socket: {} }, /app\.use\(unknownPath\(\)\)/],
] as const)
  it(`${of} refuses ${what} at construction, and says what to write`, () => {
    assert.throws(() => FACTORIES[of]?.(given as never), { name: 'TypeError', message })
  })
