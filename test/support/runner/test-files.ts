import { availableParallelism } from 'node:os'
import { closingLines, sumOf } from './closing-lines.ts'
import type { FileResult } from './file-results.ts'
import { processesOf } from './processes-of.ts'
import { type FileOptions, startTestProcess, type TestProcess } from './test-process.ts'

/** They wait for a part of their time. */
const PROCESSES_PER_CORE = 2
const SLOWEST = 10
/** Where more files than this have failed, it was not for want of a processor. */
const MAX_REPEATED = 6

/** Options of {@link runTestFiles}. */
export interface RunOptions extends FileOptions {
  /** Most files that run one after the other in one process. Defaults to 1. */
  readonly filesPerProcess?: number
  /** The folder whose files run in one process, one after the other. Defaults to none. */
  readonly oneProcessFor?: string
  /**
   * Runs a file that has failed beside others once more, alone, and takes what comes of that: a busy machine fails a test
   * whose subject is time, too. Defaults to false.
   */
  readonly repeatAlone?: boolean
  /** Called behind each process. Defaults to nothing. */
  readonly ended?: (pid: number) => unknown
}

/**
 * Runs test files, some processes at a time, and prints how each came out; at the end the slowest, all that
 * failed once more, and the counts.
 *
 * @returns whether all is well.
 */
export async function runTestFiles(paths: readonly string[], options: RunOptions): Promise<boolean> {
  const started = performance.now()
  const running = new Set<TestProcess>()
  endWithThisProcess(running)
  const results: FileResult[] = []
  const run = async (some: readonly string[]): Promise<FileResult[]> => {
    const tests = startTestProcess(some, options)
    running.add(tests)
    const known = await tests.results
    running.delete(tests)
    await ended?.(tests.pid)
    for (const result of known) process.stdout.write(told(result))
    return known
  }
  const { filesPerProcess = 1, oneProcessFor, repeatAlone = false, ended } = options
  const left = processesOf(paths, filesPerProcess, oneProcessFor)
  const worker = async (): Promise<void> => {
    for (let some = left.shift(); some; some = left.shift()) {
      const known = await run(some)
      results.push(...known)
      const unknown = some.filter((path) => !known.some((result) => result.path === path))
      left.push(...unknown.map((path) => [path]))
    }
  }
  const parallel = availableParallelism() * PROCESSES_PER_CORE
  await Promise.all(Array.from({ length: parallel }, worker))
  const failed = results.filter(({ failure }) => failure !== undefined)
  if (repeatAlone && failed.length <= MAX_REPEATED) {
    for (const first of failed) {
      process.stdout.write(`\n# once more, alone: ${first.path}\n`)
      results.splice(results.indexOf(first), 1, ...(await run([first.path])))
    }
  }
  process.stdout.write(conclusion(results, performance.now() - started))
  return results.length > 0 && results.every(({ failure }) => failure === undefined)
}

function told({ path, milliseconds, output, counts, failure }: FileResult): string {
  const head = `${seconds(milliseconds)}  ${path}`
  return failure === undefined
    ? `ok ${head} (${counts.tests})\n${output}`
    : `not ok ${head}: ${failure}\n${output}`
}

function conclusion(results: readonly FileResult[], milliseconds: number): string {
  const slowest = results.toSorted((one, other) => other.milliseconds - one.milliseconds).slice(0, SLOWEST)
  const failed = results.filter(({ failure }) => failure !== undefined)
  return [
    '\n# slowest\n',
    ...slowest.map((result) => `${seconds(result.milliseconds)}  ${result.path}\n`),
    ...(failed.length > 0 ? ['\n# what failed, again\n', ...failed.map(told)] : []),
    results.length > 0 ? '\n' : '\nno test file is there\n',
    closingLines(sumOf(results.map(({ counts }) => counts)), milliseconds),
  ].join('')
}

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`.padStart(8)

/** What is asked of this process is done to the files as well: they are in groups of their own, so nobody else asks them. */
function endWithThisProcess(running: ReadonlySet<TestProcess>): void {
  process.on('exit', () => {
    for (const tests of running) tests.kill()
  })
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)
    process.on(signal, () => process.exit(code))
}
