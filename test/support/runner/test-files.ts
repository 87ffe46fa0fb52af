import { availableParallelism } from 'node:os'
import { closingLines, sumOf } from './closing-lines.ts'
import type { FileResult } from './file-results.ts'
import { processesOf } from './processes-of.ts'
import { type FileOptions, startTestProcess, type TestProcess } from './test-process.ts'

/** They wait for a part of their time. */
const PROCESSES_PER_CORE = 2
const SLOWEST = 10
/** Where more files than this have failed, it was not for want of a processor. */
const MAX_REPEATED = 10

/** Options of {@link runTestFiles}. */
export interface RunOptions extends FileOptions {
  /** Most files that run one after the other in one process. Defaults to 1. */
  readonly filesPerProcess?: number
  /** The folder whose files run in one process, one after the other. Defaults to none. */
  readonly oneProcessFor?: string
  /**
   * Repeats a file that failed beside others, alone, and takes the second result, because a busy machine also fails tests
   * about time. Files that passed only then are named at the end. Defaults to false.
   */
  readonly repeatAlone?: boolean
  /** Called behind each process. Defaults to nothing. */
  readonly ended?: (pid: number) => unknown
}

/**
 * Runs test files, some processes at a time, and prints the result of each. At the end it prints the slowest files, the
 * failures again, the files that passed only at the second try, and the counts.
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
  const secondTry: string[] = []
  if (repeatAlone && failed.length <= MAX_REPEATED) {
    for (const first of failed) {
      process.stdout.write(`\n# once more, alone: ${first.path}\n`)
      const again = await run([first.path])
      results.splice(results.indexOf(first), 1, ...again)
      if (again.every(({ failure }) => failure === undefined)) secondTry.push(first.path)
    }
  }
  process.stdout.write(conclusion(results, secondTry, performance.now() - started))
  return results.length > 0 && results.every(({ failure }) => failure === undefined)
}

function told({ path, milliseconds, output, counts, failure }: FileResult): string {
  const head = `${seconds(milliseconds)}  ${path}`
  return failure === undefined
    ? `ok ${head} (${counts.tests})\n${output}`
    : `not ok ${head}: ${failure}\n${output}`
}

/** @param secondTry the files that passed only when they were repeated. */
function conclusion(
  results: readonly FileResult[],
  secondTry: readonly string[],
  milliseconds: number,
): string {
  const slowest = results.toSorted((one, other) => other.milliseconds - one.milliseconds).slice(0, SLOWEST)
  const failed = results.filter(({ failure }) => failure !== undefined)
  return [
    '\n# slowest\n',
    ...slowest.map((result) => `${seconds(result.milliseconds)}  ${result.path}\n`),
    ...(failed.length > 0 ? ['\n# what failed, again\n', ...failed.map(told)] : []),
    ...(secondTry.length > 0
      ? ['\n# passed only at the second try\n', ...secondTry.map((path) => `${path}\n`)]
      : []),
    results.length > 0 ? '\n' : '\nno test file is there\n',
    closingLines(sumOf(results.map(({ counts }) => counts)), milliseconds),
  ].join('')
}

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`.padStart(8)

/** Ends the files with this process: their groups are their own, so no signal for this process reaches them. */
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
