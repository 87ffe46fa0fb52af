import type { TestEvent } from 'node:test/reporters'

/** Names of tests whose failure says nothing, as JSON. */
const IGNORED: ReadonlySet<string> = new Set(JSON.parse(process.env.MUTANT_IGNORED ?? '[]'))
const GOES_ON = process.env.MUTANT_GOES_ON === '1'

/**
 * A reporter of Node's test runner: names the first test that fails, and ends the process there. With `MUTANT_GOES_ON` it
 * names all of them, and says at the end how many have passed.
 */
export default async function* stopAtFailure(events: AsyncIterable<TestEvent>): AsyncIterable<string> {
  let passed = 0
  for await (const event of events) {
    if (event.type === 'test:pass' && event.data.details.type !== 'suite') passed++
    if (event.type !== 'test:fail' || event.data.todo || failedInside(event.data.details.error)) continue
    const { name } = event.data
    if (IGNORED.has(name)) {
      yield `ignored: ${name}\n`
      continue
    }
    // The writer of what is yielded would be cut off.
    process.stdout.write(`failed: ${name}\n`)
    if (!GOES_ON) process.exit(1)
  }
  yield `passed: ${passed}\n`
}

/** Of a suite that fails because of its tests those have told. */
const failedInside = (error: unknown) =>
  (error as { failureType?: unknown } | undefined)?.failureType === 'subtestsFailed'
