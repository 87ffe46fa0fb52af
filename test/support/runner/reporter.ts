import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import { type Counts, closingLinesOf } from './closing-lines.ts'

type Ended = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>
type Failed = Extract<TestEvent, { type: 'test:fail' }>['data']

/**
 * Reports on a process of tests to the runner: each failure as it happens, the notes of its tests, and counts of each
 * file, which is a suite of the outermost, at its end. Node counts a hook of a whole file that fails nowhere: here it is a
 * failure.
 */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const paths = process.argv.slice(2)
  const path: string[] = []
  let counts = new Count()
  for await (const event of events) {
    const { type, data } = event
    if (type === 'test:start') path.splice(data.nesting, Infinity, data.name)
    else if (type === 'test:diagnostic' && !/^[a-z_]+ [\d.]+$/.test(data.message)) yield `  ${data.message}\n`
    else if (type === 'test:pass' || type === 'test:fail') {
      const isOwnFailure = type === 'test:fail' && !isFailureOfParts(data)
      const isFile = paths.includes(data.name) && data.nesting === 0
      if (isOwnFailure)
        yield failure(
          data.nesting === 0 ? [isFile ? 'the file itself' : data.name] : path.slice(1, data.nesting + 1),
          data,
        )
      if (isFile) {
        if (isOwnFailure) counts.addFailure()
        yield closingLinesOf(data.name, counts.all, data.details.duration_ms)
        counts = new Count()
      } else if (data.nesting > 0) {
        if (typeof data.skip === 'string')
          yield `  skipped: ${path.slice(1, data.nesting + 1).join(' > ')}: ${data.skip}\n`
        counts.add(event)
      }
    }
  }
}

/** Counts as Node does, except that a suite that is skipped counts as a test: Node does not count what it would have run. */
class Count {
  readonly #counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 }

  get all(): Counts {
    return this.#counts
  }

  add({ type, data }: Ended): void {
    const isSuite = data.details.type === 'suite'
    if (isSuite) this.#counts.suites++
    if (!isSuite || data.skip !== undefined) {
      this.#counts.tests++
      this.#counts[outcomeOf({ type, data } as Ended)]++
    }
  }

  /** A failure that is no test's. */
  addFailure(): void {
    this.#counts.fail++
  }
}

function outcomeOf({ type, data }: Ended): 'pass' | 'fail' | 'cancelled' | 'skipped' | 'todo' {
  if (data.skip !== undefined) return 'skipped'
  if (data.todo !== undefined) return 'todo'
  if (type === 'test:pass') return 'pass'
  const kind = failureTypeOf(data.details.error)
  return kind === 'cancelledByParent' || kind === 'testTimeoutFailure' ? 'cancelled' : 'fail'
}

/** Whether a suite or test failed only because of its parts, which are reported already. */
function isFailureOfParts({ details }: Failed): boolean {
  return failureTypeOf(details.error) === 'subtestsFailed'
}

function failure(names: readonly string[], { file = '', line, details }: Failed): string {
  const { error, duration_ms } = details
  const { cause, message } = error
  const isThrown = failureTypeOf(error) === 'testCodeFailure' || cause instanceof Error
  const reason = typeof cause === 'string' && cause !== message ? `${message}: ${cause}` : message
  const text = isThrown && typeof cause !== 'string' ? inspect(cause, { depth: 8 }) : reason
  const where = `${relative('', file)}:${line}`
  const indented = text.replaceAll(/^(?=.)/gm, '    ')
  return `  not ok: ${names.join(' > ')} (${where}, ${Math.round(duration_ms)} ms)\n${indented}\n`
}

const failureTypeOf = (error: Error) => (error as Error & { failureType?: string }).failureType
