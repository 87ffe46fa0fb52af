// How exact limits and money are under load, with everything failing that can:
// node test/bench/accuracy.ts --help
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { measure } from './accuracy/measure.ts'
import { figureTable } from './accuracy/promises.ts'
import { setStage } from './accuracy/stage.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '75' },
    callers: { type: 'string', default: '40' },
    calm: { type: 'boolean', default: false },
    restarts: { type: 'boolean', default: false },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(`--seconds of load, --callers without limits, --calm for a run in which nothing fails and nobody leaves,
--restarts for a calm run in which each process is replaced, --json <file> for the figures`)
  process.exit()
}
const [seconds, callers] = [Number(flags.seconds), Number(flags.callers)]
const { restarts } = flags
const faults = !flags.calm && !restarts

if (!(seconds >= 1 && callers >= 1)) throw new Error('--seconds and --callers are numbers from 1 up')

const stage = await setStage(faults)
try {
  const run = await measure(stage, seconds, callers, restarts)
  const title = `${restarts ? 'with restarts' : faults ? 'with faults' : 'calm'}, ${seconds} s, ${run.requests} requests`
  console.log(`\n${title}\n\n${figureTable(run.figures)}\n\n${run.notes.join('\n')}`)
  if (flags.json) await writeFile(flags.json, JSON.stringify({ seconds, callers, faults, ...run }, null, 2))
  process.exitCode = run.figures.every(({ kept }) => kept) ? 0 : 1
} finally {
  await stage.clear()
}
process.exit()
