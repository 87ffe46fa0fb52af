/** How the tests of a file, or of a whole run, came out; suites apart from tests. */
export interface Counts {
  readonly tests: number
  readonly suites: number
  readonly pass: number
  readonly fail: number
  readonly cancelled: number
  readonly skipped: number
  readonly todo: number
}

const NAMES = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'] as const

/** Writes counts as Node's TAP reporter does at the end of a run. */
export function closingLines(counts: Counts, milliseconds: number): string {
  return [
    ...NAMES.map((name) => `# ${name} ${counts[name]}`),
    `# duration_ms ${milliseconds.toFixed(0)}`,
    '',
  ].join('\n')
}

/** Reads the closing lines at the end of an output; undefined where there are none. */
export function readClosingLines(output: string): { counts: Counts; before: string } | undefined {
  const lines = NAMES.map((name) => `# ${name} (?<${name}>\\d+)\n`).join('')
  const found = new RegExp(`^${lines}# duration_ms \\d+\n(?![^]*^# tests )`, 'm').exec(output)
  if (!found?.groups) return undefined
  const { groups } = found
  const counts = Object.fromEntries(NAMES.map((name) => [name, Number(groups[name])])) as unknown as Counts
  return { counts, before: output.slice(0, found.index) + output.slice(found.index + found[0].length) }
}

/** Adds up the counts of several files. */
export function sumOf(all: readonly Counts[]): Counts {
  const total = (name: (typeof NAMES)[number]) => all.reduce((sum, counts) => sum + counts[name], 0)
  return Object.fromEntries(NAMES.map((name) => [name, total(name)])) as unknown as Counts
}
