import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'

export const USAGE = `npm run mutants -- <folder or file, or file:from-to> … [options]

  --sample N       tries N mutants, spread evenly over the files (all of them)
  --seed N         draws others (1)
  --since REV      only mutants of lines that have changed since a revision
  --operator NAME  only mutants of this kind
  --tests GLOB     these test files instead of those of \`npm test\`; may be repeated
  --budget S       seconds of tests for one mutant, by what they take without it (60)
  --jobs N         mutants at once (half of the processors)
  --accepted FILE  survivors that are accepted, with the reason (test/mutants/accepted.json)
  --json FILE      writes what became of each mutant
  --list           lists the mutants and tries none`

/** What the tool was asked to do. */
export interface Arguments {
  readonly targets: readonly Target[]
  readonly sample: number
  readonly seed: number
  readonly since: string | undefined
  readonly operator: string | undefined
  readonly tests: readonly string[] | undefined
  readonly budgetMs: number
  readonly jobs: number
  readonly accepted: string
  readonly json: string | undefined
  readonly list: boolean
}

/** A folder, a file, or lines of one. */
export interface Target {
  readonly path: string
  readonly fromLine: number
  readonly toLine: number
}

/** Throws when what was asked for is not understood. */
export function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      sample: { type: 'string', default: 'Infinity' },
      seed: { type: 'string', default: '1' },
      since: { type: 'string' },
      operator: { type: 'string' },
      tests: { type: 'string', multiple: true },
      budget: { type: 'string', default: '60' },
      jobs: { type: 'string', default: `${Math.max(1, Math.floor(availableParallelism() / 2))}` },
      accepted: { type: 'string', default: 'test/mutants/accepted.json' },
      json: { type: 'string' },
      list: { type: 'boolean', default: false },
    },
  })
  if (positionals.length === 0) throw new Error('Name a folder or a file.')
  return {
    ...values,
    targets: positionals.map(targetOf),
    sample: numberOf('sample', values.sample),
    seed: numberOf('seed', values.seed),
    since: values.since,
    operator: values.operator,
    tests: values.tests,
    budgetMs: numberOf('budget', values.budget) * 1000,
    jobs: numberOf('jobs', values.jobs),
    json: values.json,
  }
}

function targetOf(text: string): Target {
  const [, path = text, from = '1', to = from] = /^(.+):(\d+)(?:-(\d+))?$/.exec(text) ?? []
  return path === text
    ? { path: path.replace(/\/+$/, ''), fromLine: 1, toLine: Number.POSITIVE_INFINITY }
    : { path, fromLine: Number(from), toLine: Number(to) }
}

function numberOf(name: string, text: string): number {
  const number = Number(text)
  if (!(number >= 1)) throw new Error(`--${name} must be a number of at least 1.`)
  return number
}
