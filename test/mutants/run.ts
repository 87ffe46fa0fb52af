import { globSync, writeFileSync } from 'node:fs'
import { sep } from 'node:path'
import { filesOf } from '../support/runner/suites.ts'
import { readAccepted } from './accepted.ts'
import { type Arguments, readArguments, USAGE } from './arguments.ts'
import { candidates, drawn } from './choose-mutants.ts'
import { measure } from './coverage.ts'
import { described, measuredLine, report } from './report.ts'
import { type Trial, tryMutant } from './trial.ts'

const root = process.cwd()
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

await run(argumentsOrEnd())

function argumentsOrEnd(): Arguments {
  try {
    return readArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    return process.exit(2)
  }
}

async function run(args: Arguments): Promise<void> {
  const all = candidates(args)
  const mutants = drawn(all, args)
  if (args.list) {
    for (const mutant of mutants) console.log(described(mutant))
    console.log(`${mutants.length} of ${all.length} mutants`)
    return
  }
  const accepted = readAccepted(args.accepted)
  const baselines = await measure({
    root,
    tests: testsOf(args),
    files: [...new Set(mutants.map(({ file }) => file))],
    jobs: args.jobs,
    onMeasured: (baseline) => console.log(measuredLine(baseline)),
  })
  for (const { test, failing } of baselines.values()) {
    if (failing.length > 0)
      console.log(`${test} fails without a mutant, and is not heard: ${failing.join(', ')}`)
  }
  const trials: Trial[] = []
  const kills = new Map<string, number>()
  const queue = [...mutants]
  const work = async () => {
    for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
      const trial = await tryMutant(mutant, { root, baselines, budgetMs: args.budgetMs, kills })
      trials.push(trial)
      console.log(
        `${trials.length}/${mutants.length} ${trial.outcome} ${mutant.file}:${mutant.line} ${mutant.operator}`,
      )
      if (args.json !== undefined) writeFileSync(args.json, JSON.stringify(trials, null, 2))
    }
  }
  await Promise.all(Array.from({ length: args.jobs }, work))
  report(trials, accepted, all)
}

/** Those of `npm test` where none are named. */
function testsOf({ tests }: Arguments): string[] {
  return (tests === undefined ? filesOf('test') : globSync(tests))
    .map((path) => path.replaceAll(sep, '/'))
    .sort()
}
