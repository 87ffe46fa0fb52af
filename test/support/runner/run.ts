import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { shareServers } from './shared-servers.ts'
import { runTestFiles } from './test-files.ts'

/** Which files a run takes, and how long a file and one of its tests may take. Every test file is in exactly one. */
const SUITES = {
  test: { files: 'test/**/*.test.ts', but: ['test/system/**'], limitMs: 120_000, testLimitMs: 60_000 },
  system: {
    files: 'test/system/**/*.test.ts',
    but: ['test/system/package/**'],
    limitMs: 400_000,
    testLimitMs: 180_000,
  },
  package: { files: 'test/system/package/*.test.ts', but: [], limitMs: 400_000, testLimitMs: 300_000 },
} as const

const [name = '', ...given] = process.argv.slice(2)
if (!(name in SUITES)) {
  console.error(
    `usage: run.ts ${Object.keys(SUITES).join('|')} [files or patterns instead] [--limit=seconds] [flags]`,
  )
  process.exit(2)
}
process.chdir(fileURLToPath(new URL('../../../', import.meta.url)))
const { files, but, limitMs, testLimitMs } = SUITES[name as keyof typeof SUITES]
const patterns = given.filter((argument) => !argument.startsWith('-'))
const paths = patterns.length > 0 ? globSync(patterns) : globSync(files, { exclude: [...but] })
const isLimit = (argument: string) => argument.startsWith('--limit=')
const limit = given.find(isLimit)?.slice('--limit='.length)
// For one file this takes longer than it saves.
const closeServers = paths.length > 1 ? await shareServers() : async () => {}
const isWell = await runTestFiles(paths.sort(), {
  limitMs: limit === undefined ? limitMs : Number(limit) * 1000,
  testLimitMs,
  flags: given.filter((argument) => argument.startsWith('-') && !isLimit(argument)),
})
await closeServers()
process.exitCode = isWell ? 0 : 1
