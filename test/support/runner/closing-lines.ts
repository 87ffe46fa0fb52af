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

/** Closes what was said of one file. */
export function closingLinesOf(path: string, counts: Counts, milliseconds: number): string {
  return `# of ${path}\n${closingLines(counts, milliseconds)}`
}

/** Reads the closing lines of files, by their path, with what was said before each, and the rest behind the last. */
export function readClosingLines(output: string) {
  const lines = NAMES.map((name) => `# ${name} (?<${name}>\\d+)\n`).join('')
  const files = new Map<string, { readonly counts: Counts; readonly before: string }>()
  let end = 0
  for (const found of output.matchAll(RegExp(`^# of (?<path>.*)\n${lines}# duration_ms \\d+\n`, 'gm'))) {
    const { path = '', ...groups } = found.groups as Record<string, string>
    const counts = Object.fromEntries(NAMES.map((name) => [name, Number(groups[name])])) as unknown as Counts
    files.set(path, { counts, before: output.slice(end, found.index) })
    end = found.index + found[0].length
  }
  return { files, rest: output.slice(end) }
}

/** Adds up the counts of several files. */
export function sumOf(all: readonly Counts[]): Counts {
  const total = (name: (typeof NAMES)[number]) => all.reduce((sum, counts) => sum + counts[name], 0)
  return Object.fromEntries(NAMES.map((name) => [name, total(name)])) as unknown as Counts
}
