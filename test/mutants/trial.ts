import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Baseline, isRun } from './coverage.ts'
import { type Mutant, mutated } from './find-mutants.ts'
import { runTestFile, scratchFolder } from './run-test-file.ts'

/** What became of a mutant. */
export interface Trial {
  readonly mutant: Mutant
  /** `uncovered`: no test runs its line. */
  readonly outcome: 'killed' | 'timeout' | 'survived' | 'uncovered'
  /** The files of tests that ran, in this order. */
  readonly ran: readonly string[]
  /** How many more run its line, for which there was no time. */
  readonly left: number
  /** The test that noticed it. */
  readonly by?: string
}

/** What {@link tryMutant} is told. */
export interface TrialOptions {
  readonly root: string
  readonly baselines: ReadonlyMap<string, Baseline>
  /** Of tests, as the baseline measured them, for one mutant. */
  readonly budgetMs: number
  /** How many mutants of a file each file of tests has noticed; counted on. */
  readonly kills: Map<string, number>
}

/** Runs the tests that run a mutant's line, those first that are likely to notice it, until one does. */
export async function tryMutant(mutant: Mutant, options: TrialOptions): Promise<Trial> {
  const { root, baselines, budgetMs, kills } = options
  const killsOf = (test: string) => kills.get(`${test} ${mutant.file}`) ?? 0
  const covering = [...baselines.values()]
    .filter((baseline) => baseline.usable && isRun(baseline, mutant.file, mutant.start))
    .map((baseline) => ({
      ...baseline,
      killed: killsOf(baseline.test),
      near: nearness(baseline.test, mutant.file),
    }))
    .sort((one, other) => other.killed - one.killed || other.near - one.near || one.ms - other.ms)
  const ran: string[] = []
  if (covering.length === 0) return { mutant, outcome: 'uncovered', ran, left: 0 }

  const file = join(root, mutant.file)
  const textFile = join(scratchFolder(root), `mutant-${process.pid}-${mutant.start}-${Math.random()}.ts`)
  writeFileSync(textFile, mutated(mutant))
  const { NODE_COMPILE_CACHE = join(scratchFolder(root), 'compile') } = process.env
  const env = { MUTANT_FILE: file, MUTANT_TEXT: textFile, NODE_COMPILE_CACHE }
  try {
    let spent = 0
    for (const { test, ms, failing } of covering) {
      if (spent > 0 && spent + ms > budgetMs) continue
      spent += ms
      ran.push(test)
      const ignored = { MUTANT_IGNORED: JSON.stringify(failing) }
      const run = await runTestFile(join(root, test), {
        env: { ...env, ...ignored },
        timeoutMs: 3 * ms + 5000,
      })
      if (run.outcome === 'passed') continue
      kills.set(`${test} ${mutant.file}`, killsOf(test) + 1)
      const left = covering.length - ran.length
      return {
        mutant,
        outcome: run.outcome === 'failed' ? 'killed' : 'timeout',
        ran,
        left,
        by: run.failed[0] ?? run.lastWords,
      }
    }
    return { mutant, outcome: 'survived', ran, left: covering.length - ran.length }
  } finally {
    rmSync(textFile, { force: true })
  }
}

/** How many folder and file names a test and a file share: the tests of a room know it best. */
function nearness(test: string, file: string): number {
  const names = new Set(test.split(/[/.]/))
  return new Set(file.split(/[/.]/).filter((name) => names.has(name))).size
}
