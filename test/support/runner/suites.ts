import { globSync } from 'node:fs'

/** Which files a run takes, and how long a file and one of its tests may take. Every test file is in exactly one. */
export const SUITES = {
  test: {
    files: 'test/**/*.test.ts',
    but: ['test/system/**'],
    limitMs: 240_000,
    testLimitMs: 60_000,
    filesPerProcess: 60,
    repeatAlone: true,
  },
  system: {
    files: 'test/system/**/*.test.ts',
    but: ['test/system/package/**'],
    limitMs: 400_000,
    testLimitMs: 180_000,
    // Four fifths of their time is the start of a process.
    oneProcessFor: 'test/system/sdk/',
    repeatAlone: true,
  },
  package: {
    files: 'test/system/package/*.test.ts',
    but: [],
    limitMs: 400_000,
    testLimitMs: 300_000,
    repeatAlone: true,
  },
} as const

export type SuiteName = keyof typeof SUITES

/** These take more than a minute each: behind the others, the last of them would go on alone. */
const LONGEST = [
  'hardening/event-loop-holds',
  'chaos/money-killed',
  'browser/million-calls',
  'hardening/stream-costs',
  'gateway/workers',
  'chaos/locked-rows',
  'browser/every-view',
  'gateway/budgets',
  'chaos/redis-held-up',
  'chaos/unwritable-charges',
  'hardening/costs',
  'chaos/money-burst',
].map((name) => `test/system/${name}.test.ts`)

/** The files of a suite, from the folder of the package, in the order in which they begin: longer ones are in the last folders. */
export function filesOf(name: SuiteName): string[] {
  const { files, but } = SUITES[name]
  const found = globSync(files, { exclude: [...but] }).sort()
  const longest = LONGEST.filter((path) => found.includes(path))
  return [...longest, ...found.filter((path) => !longest.includes(path)).reverse()]
}
