import { readFileSync } from 'node:fs'

/**
 * A file with a top-level `await` can only be imported, and imports of several files look the same. Others have a comment
 * that says why.
 */
const RUNS_ALONE = /^(?:(?:const|let) .*= )?await |^\/\/ Runs in a process of its own\b/m
/** Such a file would confuse timers that servers of other files have started. These files share processes of their own. */
const SETS_CLOCK = /\bmock\.method\(performance\b/
/** No process gets more than this part of the files that are left, so that at the end none goes on alone for long. */
const PART = 1 / 6
/** Nor fewer than this: the start of a process takes as much time as some small files. */
const FEWEST = 10

/**
 * Divides files over processes, some of a folder in one: most of a small file's time is the start of a process, and the
 * compilation of what others have compiled.
 *
 * @param oneFor the folder whose files are all in one process.
 */
export function processesOf(paths: readonly string[], most: number, oneFor?: string): string[][] {
  const inOne = oneFor === undefined ? [] : paths.filter((path) => path.startsWith(oneFor))
  const others = paths.filter((path) => !inOne.includes(path))
  const {
    alone = [],
    clock = [],
    together = [],
  } = Object.groupBy(others, (path) => {
    if (most === 1) return 'together'
    const source = readFileSync(path, 'utf8')
    return RUNS_ALONE.test(source) ? 'alone' : SETS_CLOCK.test(source) ? 'clock' : 'together'
  })
  return [
    ...(inOne.length > 0 ? [inOne] : []),
    ...alone.map((path) => [path]),
    ...divided(clock, most),
    ...divided(together, most),
  ]
}

function divided(paths: readonly string[], most: number): string[][] {
  const left = [...paths]
  const processes: string[][] = []
  while (left.length > 0) {
    const part = Math.max(FEWEST, Math.ceil(left.length * PART))
    processes.push(left.splice(0, Math.min(most, part)))
  }
  return processes
}
