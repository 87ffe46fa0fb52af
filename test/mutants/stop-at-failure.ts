import type { TestEvent } from 'node:test/reporters'

/** A reporter of Node's test runner: names the first test that fails, and ends the process there. */
export default async function* stopAtFailure(events: AsyncIterable<TestEvent>): AsyncIterable<string> {
  for await (const event of events) {
    if (event.type !== 'test:fail' || event.data.todo) continue
    // The writer of what is yielded would be cut off.
    process.stdout.write(`failed: ${event.data.name}\n`)
    process.exit(1)
  }
  yield ''
}
