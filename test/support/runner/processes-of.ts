import { readFileSync } from 'node:fs'

/** What files do that others in the same process would notice. */
const ALONE = [
  /\bmock\.(timers|method\((globalThis|performance|Date|console|process))/,
  /\bprocess\.(on|once|chdir|memoryUsage|cpuUsage|env\.\w+ =)/,
  /\bdns-server\b|\bsetGlobal\w+\(/,
  // An import that waits: several cannot be told apart.
  /^(?:(?:const|let) .*= )?await /m,
]

/**
 * Divides files over processes, some of a folder in one: most of a small file's time is the start of a process, and the
 * compilation of what others have compiled. What reaches the whole process stays alone.
 */
export function processesOf(paths: readonly string[], filesPerProcess: number): string[][] {
  // The longest are in the last folders: they begin first, and what is alone fills the gaps at the end.
  const { alone = [], together = [] } = Object.groupBy(paths.toReversed(), (path) =>
    filesPerProcess === 1 || ALONE.some((pattern) => pattern.test(readFileSync(path, 'utf8')))
      ? 'alone'
      : 'together',
  )
  const starts = Array.from(
    { length: Math.ceil(together.length / filesPerProcess) },
    (_, i) => i * filesPerProcess,
  )
  return [
    ...starts.map((start) => together.slice(start, start + filesPerProcess)),
    ...alone.map((path) => [path]),
  ]
}
