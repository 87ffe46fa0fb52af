import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { type Range, union } from './run-ranges.ts'
import { runTestFile, scratchFolder } from './run-test-file.ts'

const SLOWEST_MS = 300_000

/** What a file of tests runs of the project, without any change. */
export interface Baseline {
  readonly test: string
  readonly testHash: string
  /** Tests that fail without a mutant, and can notice none. */
  readonly failing: readonly string[]
  /** Whether some test passes. */
  readonly usable: boolean
  readonly ms: number
  /** By path from the root. */
  readonly files: Readonly<Record<string, { readonly hash: string; readonly run: readonly Range[] }>>
}

/** What {@link measure} is told. */
export interface MeasureOptions {
  readonly root: string
  readonly tests: readonly string[]
  /** The files whose mutants are to be tried. */
  readonly files: readonly string[]
  /** How many test files run at once. */
  readonly jobs: number
  readonly onMeasured: (baseline: Baseline) => void
}

/**
 * Returns what each file of tests runs, by its path: as measured before where neither it nor one of the files that it runs
 * has changed, else measured now.
 */
export async function measure(options: MeasureOptions): Promise<Map<string, Baseline>> {
  const { root, tests, files, jobs, onMeasured } = options
  const known = new Map<string, Baseline>()
  for (const test of tests) {
    const path = recordOf(root, test)
    if (existsSync(path)) known.set(test, JSON.parse(readFileSync(path, 'utf8')))
  }
  const hashes = new Map<string, string | undefined>()
  const hashOf = (file: string) => {
    if (!hashes.has(file)) hashes.set(file, hashOfFile(join(root, file)))
    return hashes.get(file)
  }
  // Nobody can say who runs a file that is new.
  const measured = (file: string) =>
    [...known.values()].some(({ files: run }) => run[file]?.hash === hashOf(file))
  const someUnknown = files.some((file) => !measured(file))
  const isCurrent = (baseline: Baseline | undefined) =>
    baseline?.usable === true &&
    baseline.testHash === hashOf(baseline.test) &&
    (someUnknown ? Object.keys(baseline.files) : files).every(
      (file) => !baseline.files[file] || baseline.files[file].hash === hashOf(file),
    )
  const queue = tests.filter((test) => !isCurrent(known.get(test)))
  const work = async () => {
    for (let test = queue.shift(); test !== undefined; test = queue.shift()) {
      const baseline = await measureOne(root, test)
      known.set(test, baseline)
      writeFileSync(recordOf(root, test), JSON.stringify(baseline))
      onMeasured(baseline)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return known
}

/** Whether something was run at this place of a file. */
export function isRun(baseline: Baseline, file: string, offset: number): boolean {
  return baseline.files[file]?.run.some(([start, end]) => start <= offset && offset < end) ?? false
}

async function measureOne(root: string, test: string): Promise<Baseline> {
  const folder = join(scratchFolder(root), `coverage-${process.pid}-${digest(test)}`)
  rmSync(folder, { recursive: true, force: true })
  const env = { MUTANT_COVERAGE: folder, MUTANT_ROOT: root, MUTANT_GOES_ON: '1' }
  const { ms, failed: failing, passed } = await runTestFile(join(root, test), { env, timeoutMs: SLOWEST_MS })
  const run = new Map<string, Range[]>()
  for (const name of existsSync(folder) ? globSync('*.json', { cwd: folder }) : []) {
    const written: Record<string, Range[]> = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    for (const [path, ranges] of Object.entries(written)) {
      run.set(path, union([...(run.get(path) ?? []), ...ranges]))
    }
  }
  rmSync(folder, { recursive: true, force: true })
  const files: Record<string, { hash: string; run: readonly Range[] }> = {}
  for (const [path, ranges] of run) {
    const hash = hashOfFile(path)
    if (hash !== undefined) files[relative(root, path).replaceAll(sep, '/')] = { hash, run: ranges }
  }
  const testHash = hashOfFile(join(root, test)) ?? ''
  return { test, testHash, failing, usable: passed > 0, ms, files }
}

function recordOf(root: string, test: string): string {
  const folder = join(scratchFolder(root), 'baselines')
  mkdirSync(folder, { recursive: true })
  return join(folder, `${digest(test)}.json`)
}

function hashOfFile(path: string): string | undefined {
  return existsSync(path) ? digest(readFileSync(path, 'utf8')) : undefined
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 24)
