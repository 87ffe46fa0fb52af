// Whether a request costs the same however much there is: node test/bench/scale.ts --help
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { PARTS } from './scale/parts.ts'
import { type ScaleRow, scaleTable } from './scale/rounds.ts'

const names = Object.keys(PARTS)
const { values: flags } = parseArgs({
  options: {
    parts: { type: 'string', default: names.join() },
    keys: { type: 'string', default: '1000000' },
    calls: { type: 'string', default: '10000000' },
    lines: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '15' },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(`--parts ${names.join()}, --keys, --calls and --lines of the large side, --rounds,
--json <file> for the figures`)
  process.exit()
}
const [keys, calls] = [Number(flags.keys), Number(flags.calls)]
const [lines, rounds] = [Number(flags.lines), Number(flags.rounds)]
// On the small side fifty settlements of a batch are those of ten accounts, and a list of twenty calls finds them.
if (!(keys >= 50 && calls >= 20_000 && lines >= 1 && rounds >= 1))
  throw new Error('--keys is a number from 50 up, --calls from 20000, --lines and --rounds from 1')

const scale = {
  small: { keys: 10, calls: 1000 },
  large: { keys, calls },
  lines,
  rounds,
  tell: (text: string) => void process.stderr.write(`${text}\n`),
}
const rows: ScaleRow[] = []
for (const part of flags.parts.split(',')) {
  const compare = PARTS[part]
  if (!compare) throw new Error(`--parts are ${names.join()}`)
  rows.push(...(await compare(scale)))
}
console.log(
  `small: 10 keys, 1000 charged calls, 1 line; large: ${keys} keys, ${calls} charged calls, ${lines} lines\n`,
)
console.log(scaleTable(rows))
if (flags.json) await writeFile(flags.json, JSON.stringify({ ...scale, rows }, null, 2))
process.exit()
