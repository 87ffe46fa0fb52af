import { globSync } from 'node:fs'

/** Which files a run takes, and how long a file and one of its tests may take. Every test file is in exactly one. */
export const SUITES = {
  test: {
    files: 'test/**/*.test.ts',
    but: ['test/system/**'],
    limitMs: 120_000,
    testLimitMs: 60_000,
    // They wait for half of their time.
    processesPerCore: 2,
    filesPerProcess: 20,
    repeatAlone: true,
  },
  system: {
    files: 'test/system/**/*.test.ts',
    but: ['test/system/package/**'],
    limitMs: 400_000,
    testLimitMs: 180_000,
    processesPerCore: 1.5,
    repeatAlone: true,
  },
  package: {
    files: 'test/system/package/*.test.ts',
    but: [],
    limitMs: 400_000,
    testLimitMs: 300_000,
    processesPerCore: 1.5,
    repeatAlone: true,
  },
} as const

export type SuiteName = keyof typeof SUITES

/** The files of a suite, from the folder of the package. */
export function filesOf(name: SuiteName): string[] {
  const { files, but } = SUITES[name]
  return globSync(files, { exclude: [...but] }).sort()
}
