/*
 * Runs first in every process of a test, and in those that the test starts: puts the text of a mutant in the place of its
 * file, or records what of the project's files is run.
 */
import childProcess from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { threadId } from 'node:worker_threads'
import { type Range, runRanges } from './run-ranges.ts'

const { MUTANT_FILE, MUTANT_TEXT, MUTANT_COVERAGE, MUTANT_ROOT } = process.env
const COVERAGE_EVERY_MS = 500

if (MUTANT_FILE && MUTANT_TEXT) replace(pathToFileURL(MUTANT_FILE).href, MUTANT_TEXT)
if (MUTANT_COVERAGE && MUTANT_ROOT) recordCoverage(MUTANT_COVERAGE, pathToFileURL(`${MUTANT_ROOT}/`).href)
handDown({ MUTANT_FILE, MUTANT_TEXT, MUTANT_COVERAGE, MUTANT_ROOT })

function replace(url: string, textFile: string): void {
  const source = readFileSync(textFile, 'utf8')
  registerHooks({
    load: (loaded, context, next) =>
      loaded.split('?')[0] === url
        ? { format: 'module-typescript', source, shortCircuit: true }
        : next(loaded, context),
  })
}

function recordCoverage(folder: string, root: string): void {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${process.pid}-${threadId}.json`)
  const write = () => {
    // Unlike takePreciseCoverage it does not count anew, which would lose functions that are waiting for something.
    session.post('Profiler.getBestEffortCoverage', (error, coverage) => {
      if (error) return
      const run: Record<string, readonly Range[]> = {}
      for (const { url, functions } of coverage.result) {
        if (!url.startsWith(root) || url.includes('/node_modules/')) continue
        const file = fileURLToPath(url.split('?')[0] as string)
        run[file] = runRanges(functions.flatMap(({ ranges }) => ranges))
      }
      writeFileSync(`${path}~`, JSON.stringify(run))
      renameSync(`${path}~`, path)
    })
  }
  // Many a process is killed.
  setInterval(write, COVERAGE_EVERY_MS).unref()
  process.on('exit', write)
}

/** Makes every process that is started inherit this, whatever environment it is given. */
function handDown(variables: Readonly<Record<string, string | undefined>>): void {
  interface Started {
    spawn(options: { envPairs?: string[] }): unknown
  }
  const started = childProcess.ChildProcess.prototype as unknown as Started
  const spawn = started.spawn
  started.spawn = function (options) {
    const pairs = options.envPairs ?? []
    const given = pairs.find((pair) => pair.startsWith('NODE_OPTIONS='))?.slice('NODE_OPTIONS='.length) ?? ''
    if (!given.includes(import.meta.url)) {
      const others = pairs.filter((pair) => !pair.startsWith('NODE_OPTIONS=') && !pair.startsWith('MUTANT_'))
      const own = Object.entries(variables).flatMap(([name, value]) => (value ? [`${name}=${value}`] : []))
      options.envPairs = [...others, ...own, `NODE_OPTIONS=${given} --import=${import.meta.url}`.trim()]
    }
    return spawn.call(this, options)
  }
}
