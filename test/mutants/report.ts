import { type Accepted, isSame } from './accepted.ts'
import type { Baseline } from './coverage.ts'
import type { Mutant } from './find-mutants.ts'
import type { Trial } from './trial.ts'

/** Prints the survivors that are not accepted, and what became of all. */
export function report(
  trials: readonly Trial[],
  accepted: readonly Accepted[],
  all: readonly Mutant[],
): void {
  const isAccepted = ({ mutant }: Trial) => accepted.some((one) => isSame(one, mutant))
  const alive = trials.filter(({ outcome }) => outcome === 'survived' || outcome === 'uncovered')
  const open = alive.filter((trial) => !isAccepted(trial))
  for (const { mutant, outcome, ran, left } of open) {
    console.log(`\n${described(mutant)}`)
    if (outcome === 'uncovered') console.log('  no test runs it')
    else console.log(`  ran ${ran.join(', ')}${left > 0 ? `; no time for ${left} more` : ''}`)
  }
  const stale = accepted.filter(
    (one) => all.some(({ file }) => file === one.file) && !all.some((mutant) => isSame(one, mutant)),
  )
  for (const { file, from } of stale) console.log(`\naccepted, but no longer there: ${file}: ${from}`)
  const count = (outcome: Trial['outcome']) => trials.filter((trial) => trial.outcome === outcome).length
  const counted = trials.length - (alive.length - open.length)
  const noticed = count('killed') + count('timeout')
  console.log(
    `\n${trials.length} of ${all.length} mutants: ${count('killed')} killed, ${count('timeout')} timed out, ` +
      `${count('survived')} survived, ${count('uncovered')} not covered; ${alive.length - open.length} of these accepted`,
  )
  console.log(
    `killed: ${counted === 0 ? '–' : ((100 * noticed) / counted).toFixed(1)} % of those that are not accepted`,
  )
}

/** A mutant as it is printed. */
export const described = ({ file, line, operator, within, from, to }: Mutant) =>
  `${file}:${line} ${operator}${within && ` in ${within}`}\n  - ${from}\n  + ${to}`

/** How the measuring of a file of tests is told. */
export const measuredLine = ({ test, ms, usable }: Baseline): string =>
  `measured ${test} ${(ms / 1000).toFixed(1)} s${usable ? '' : '; no test passes'}`
