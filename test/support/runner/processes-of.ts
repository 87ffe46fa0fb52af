import { readFileSync } from 'node:fs'

/** A file that waits at its outermost: it can only be imported, and imports of several cannot be told apart. */
const WAITS = /^(?:(?:const|let) .*= )?await /m
/** No process gets more than this part of the files that are left, so that at the end none goes on alone for long. */
const PART = 1 / 8

/**
 * Divides files over processes, some of a folder in one: most of a small file's time is the start of a process, and the
 * compilation of what others have compiled.
 */
export function processesOf(paths: readonly string[], most: number): string[][] {
  const alone = most === 1 ? [] : paths.filter((path) => WAITS.test(readFileSync(path, 'utf8')))
  const together = paths.filter((path) => !alone.includes(path))
  const processes = alone.map((path) => [path])
  while (together.length > 0)
    processes.push(together.splice(0, Math.min(most, Math.ceil(together.length * PART))))
  return processes
}
