import { availableParallelism } from 'node:os'
import { closingLines, sumOf } from './closing-lines.ts'
import { type FileOptions, type FileResult, type RunningFile, runTestFile } from './test-file.ts'

const SLOWEST = 10

/**
 * Runs test files, one more at a time than there are cores, and prints how each came out; at the end the slowest, all that
 * failed once more, and the counts.
 *
 * @returns whether all is well.
 */
export async function runTestFiles(paths: readonly string[], options: FileOptions): Promise<boolean> {
  const started = performance.now()
  const running = new Set<RunningFile>()
  endWithThisProcess(running)
  const results: FileResult[] = []
  const left = paths.values()
  const worker = async (): Promise<void> => {
    for (const path of left) {
      const file = runTestFile(path, options)
      running.add(file)
      const result = await file.result
      running.delete(file)
      results.push(result)
      process.stdout.write(told(result))
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() + 1 }, worker))
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
function endWithThisProcess(running: ReadonlySet<RunningFile>): void {
  process.on('exit', () => {
    for (const file of running) file.kill()
  })
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)
    process.on(signal, () => process.exit(code))
}
