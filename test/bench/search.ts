// How long searches through many calls take: node test/bench/search.ts --help
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { openDatabase, SqlCallStore } from '../../lib/stores/sql/index.ts'
import { WITHOUT_POSTGRES } from '../support/postgres-server.ts'
import { postgresDatabases, sqliteDatabases } from './scale/filled-databases.ts'
import { cpuClock } from './search/cpu-clock.ts'
import { measureSearches, searchTable } from './search/measure.ts'
import { callContents } from './search/rows.ts'

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '10000000' },
    weeks: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '30' },
    engines: { type: 'string', default: 'sqlite,postgres' },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(
    '--calls in the log, of so many --weeks, --rounds, --engines sqlite,postgres, --json <file> for the figures',
  )
  process.exit()
}
const span = { calls: Number(flags.calls), weeks: Number(flags.weeks) }
const rounds = Number(flags.rounds)
const tell = (text: string): void => void process.stderr.write(`${text}\n`)
const engines = flags.engines.split(',')
if (WITHOUT_POSTGRES && engines.includes('postgres')) tell(WITHOUT_POSTGRES)
const figures: Record<string, unknown> = {}
for (const engine of engines) {
  if (engine === 'postgres' && WITHOUT_POSTGRES) continue
  const databases = await (engine === 'sqlite' ? sqliteDatabases(tell) : postgresDatabases(tell))
  try {
    tell(`${databases.engine}: filling`)
    const url = await databases.create(callContents(span))
    tell(`${databases.engine}: ${((await databases.size(url)) / 1e9).toFixed(1)} GB`)
    const db = await openDatabase(url, { readOnly: true, poolSize: 1 })
    const store = new SqlCallStore(db)
    const measured = await measureSearches((query) => store.list(query), span, rounds, await cpuClock(db))
    await db.destroy()
    figures[databases.engine] = measured
    console.log(
      `${databases.engine}, ${span.calls} calls of ${span.weeks} weeks\n\n${searchTable(measured)}\n`,
    )
  } finally {
    await databases.close()
  }
}
if (flags.json) await writeFile(flags.json, JSON.stringify(figures, null, 2))
process.exit()
