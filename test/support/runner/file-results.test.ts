import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { closingLinesOf } from './closing-lines.ts'
import { type End, resultsOf } from './file-results.ts'

const NONE = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 }
const GREEN = { ...NONE, tests: 1, pass: 1 }
const KILLED = 'had not ended after 1 s'

/** How three files of a process come out, of which the first two have closed. */
function resultsWith(second: typeof NONE, end: Partial<End>): (string | undefined)[] {
  const paths = ['first', 'second', 'third']
  const begun = paths.map((path, at) => ({ path, at }))
  const output = closingLinesOf('first', GREEN, 1) + closingLinesOf('second', second, 1)
  const whole = { code: 1, signal: null, killed: undefined, left: [], at: 9, output, ...end }
  return resultsOf(paths, begun, whole).map(({ failure }) => failure)
}

describe('the result of a file', () => {
  for (const [name, end, last] of [
    [
      'that is killed',
      { killed: KILLED, signal: 'SIGKILL' },
      `${KILLED}, and was killed with all that it had started`,
    ],
    ['that ends its process', { code: 3 }, 'ended with code 3 before its tests did'],
  ] as const)
    for (const [what, second, failure] of [
      ['has passed', GREEN, undefined],
      ['has failed', { ...NONE, tests: 1, fail: 1 }, 'failed'],
      ['was cancelled', { ...NONE, tests: 1, cancelled: 1 }, 'failed'],
    ] as const)
      it(`is its own, and an earlier file that ${what} keeps its result: a file ${name}`, () => {
        assert.deepEqual(resultsWith(second, end), [undefined, failure, last])
      })
})
