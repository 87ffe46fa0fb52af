import { type Counts, readClosingLines } from './closing-lines.ts'

/** How a test file came out. */
export interface FileResult {
  readonly path: string
  readonly milliseconds: number
  /** Its output, without the counts. */
  readonly output: string
  readonly counts: Counts
  /** Undefined: all is well. */
  readonly failure: string | undefined
}

/** How a process of test files ended, as its runner saw it. */
export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it was killed. */
  readonly killed: string | undefined
  /** Processes that it left behind. */
  readonly left: readonly string[]
  readonly at: number
  readonly output: string
}

/** When a file began. */
export interface Begun {
  readonly path: string
  readonly at: number
}

const NOTHING: Counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 }

/**
 * Returns how a process's files came out. Where it ended in another way than by their tests, that is the fault of the
 * file that ran then; of the files behind it, and of all where any may be to blame, there is no result.
 */
export function resultsOf(paths: readonly string[], begun: readonly Begun[], end: End): FileResult[] {
  const { files, rest } = readClosingLines(end.output)
  const areClosed = paths.every((path) => files.has(path))
  const hasFailed = [...files.values()].some(({ counts }) => !isPassed(counts))
  const trouble = troubleOf(end, areClosed, hasFailed)
  if (trouble !== undefined && areClosed && paths.length > 1) return []
  const current = begun.at(-1)?.path
  return paths.flatMap((path) => {
    const closed = files.get(path)
    const own = path === current ? trouble : undefined
    if (!closed && own === undefined) return []
    const { counts, before } = closed ?? { counts: NOTHING, before: '' }
    // Where a kill has met the file, its cancelled tests are reported as that kill.
    const isFailed = !isPassed(counts) && (end.killed === undefined || path !== current)
    const failure = isFailed ? 'failed' : (own ?? (counts.tests > 0 ? undefined : 'has no test'))
    const at = begun.findIndex((one) => one.path === path)
    return {
      path,
      milliseconds: (begun[at + 1]?.at ?? end.at) - (begun[at]?.at ?? end.at),
      output: own === undefined ? before : before + rest,
      // A file that failed otherwise than by its tests is itself one that failed.
      counts: failure && isPassed(counts) ? { ...counts, tests: counts.tests + 1, fail: 1 } : counts,
      failure,
    }
  })
}

const isPassed = ({ fail, cancelled }: Counts): boolean => fail + cancelled === 0

function troubleOf(
  { code, signal, killed, left }: End,
  areClosed: boolean,
  hasFailed: boolean,
): string | undefined {
  if (killed !== undefined) return `${killed}, and was killed with all that it had started`
  const how = `ended with ${signal ?? `code ${code}`}`
  if (!areClosed) return `${how} before its tests did`
  if (left.length > 0) return `has left processes behind: ${left.join('; ')}`
  return code === 0 || hasFailed ? undefined : how
}
