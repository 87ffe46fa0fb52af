import { readFileSync } from 'node:fs'

/**
 * A file with a top-level `await` can only be imported, and imports of several files look the same. One that replaces
 * the monotonic clock would confuse timers that other files have started. Others have a comment that says why.
 */
const RUNS_ALONE =
  /^(?:(?:const|let) .*= )?await |\bmock\.method\(performance\b|^\/\/ Runs in a process of its own\b/m
/** No process gets more than this part of the files that are left, so that at the end none goes on alone for long. */
const PART = 1 / 8

/**
 * Divides files over processes, some of a folder in one: most of a small file's time is the start of a process, and the
 * compilation of what others have compiled.
 *
 * @param oneFor the folder whose files are all in one process.
 */
export function processesOf(paths: readonly string[], most: number, oneFor?: string): string[][] {
  const inOne = oneFor === undefined ? [] : paths.filter((path) => path.startsWith(oneFor))
  const others = paths.filter((path) => !inOne.includes(path))
  const alone = most === 1 ? [] : others.filter((path) => RUNS_ALONE.test(readFileSync(path, 'utf8')))
  const together = others.filter((path) => !alone.includes(path))
  const processes = [...(inOne.length > 0 ? [inOne] : []), ...alone.map((path) => [path])]
  while (together.length > 0)
    processes.push(together.splice(0, Math.min(most, Math.ceil(together.length * PART))))
  return processes
}
