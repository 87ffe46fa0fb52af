import { globSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { useFastFolder } from '../fast-folder.ts'
import { shareServers } from './shared-servers.ts'
import { filesOf, SUITES, type SuiteName } from './suites.ts'
import { runTestFiles } from './test-files.ts'

const LIMIT = '--limit='

const [name = '', ...given] = process.argv.slice(2)
if (!(name in SUITES)) {
  console.error(
    `usage: run.ts ${Object.keys(SUITES).join('|')} [files, folders or patterns instead] [${LIMIT}seconds] [flags]`,
  )
  process.exit(2)
}
process.chdir(fileURLToPath(new URL('../../../', import.meta.url)))
const suite = name as SuiteName
const patterns = given.filter((argument) => !argument.startsWith('-'))
const flags = given.filter((argument) => argument.startsWith('-'))
const limit = flags.find((flag) => flag.startsWith(LIMIT))?.slice(LIMIT.length)
const paths = patterns.length > 0 ? globSync(patterns.map(patternOf)).sort() : filesOf(suite)
const removeFolder = useFastFolder()
// For one file this takes longer than it saves.
const servers = paths.length > 1 ? await shareServers({ built: suite === 'system' }) : undefined
try {
  const isWell = runTestFiles(paths, {
    ...SUITES[suite],
    ...(limit !== undefined && { limitMs: Number(limit) * 1000 }),
    flags: flags.filter((flag) => !flag.startsWith(LIMIT)),
    ended: (pid) => servers?.clear(pid),
  })
  // Behind all that ends what has files there.
  process.once('exit', removeFolder)
  process.exitCode = (await isWell) ? 0 : 1
} finally {
  await servers?.close()
}

/** Of a folder, its tests. */
function patternOf(given: string): string {
  return statSync(given, { throwIfNoEntry: false })?.isDirectory() ? `${given}/**/*.test.ts` : given
}
