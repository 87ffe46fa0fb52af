import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import { closingLines } from './closing-lines.ts'

/** How long a file may go on behind its last test, for its own hooks. */
const MAX_BEHIND_MS = 10_000

type Failed = Extract<TestEvent, { type: 'test:fail' }>['data']

/**
 * What a test file says to the runner: each failure as it happens, what its tests had noted, and the counts at its end.
 * Node counts a hook of the whole file that fails nowhere, and lets the process end with 0: here it is a failure, as is a
 * timer or a socket that keeps the file from ending.
 */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path: string[] = []
  let ownFailures = 0
  let endedAt = performance.now()
  for await (const { type, data } of events) {
    if (type === 'test:complete') endedAt = performance.now()
    if (type === 'test:start') path.splice(data.nesting, Infinity, data.name)
    else if (type === 'test:fail') {
      const isHookOfFile = data.nesting === 0 && data.name === data.file
      if (isHookOfFile) ownFailures++
      const names = isHookOfFile ? ['a hook of the file'] : path.slice(0, data.nesting + 1)
      if (!isFailureOfParts(data)) yield failure(names, data)
    } else if (type === 'test:diagnostic' && !/^[a-z_]+ [\d.]+$/.test(data.message))
      yield `  ${data.message}\n`
    else if (type === 'test:summary') {
      const { counts, duration_ms } = data as typeof data & { counts: { failed: number } }
      const { passed: pass, failed, ...rest } = counts
      const behind = performance.now() - endedAt
      if (behind > MAX_BEHIND_MS) {
        ownFailures++
        yield `  not ok: the file went on for ${Math.round(behind / 1000)} s behind its last test\n`
      }
      yield closingLines({ ...rest, pass, fail: failed + ownFailures }, duration_ms)
    }
  }
}

/** Whether a suite or test failed for nothing but what is in it, and was told of already. */
function isFailureOfParts({ details }: Failed): boolean {
  return failureTypeOf(details.error) === 'subtestsFailed'
}

function failure(names: readonly string[], { file = '', line, details }: Failed): string {
  const { error, duration_ms } = details
  const reason =
    failureTypeOf(error) === 'testCodeFailure' || error.cause instanceof Error ? error.cause : error.message
  const text = typeof reason === 'string' ? reason : inspect(reason, { depth: 8 })
  const where = `${relative('', file)}:${line}`
  const indented = text.replaceAll(/^(?=.)/gm, '    ')
  return `  not ok: ${names.join(' > ')} (${where}, ${Math.round(duration_ms)} ms)\n${indented}\n`
}

const failureTypeOf = (error: Error) => (error as Error & { failureType?: string }).failureType
