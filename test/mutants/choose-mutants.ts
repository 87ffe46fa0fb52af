import { execFileSync } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Arguments, Target } from './arguments.ts'
import { findMutants, type Mutant, parses } from './find-mutants.ts'
import { sample } from './sample.ts'

/** Returns every mutant that was asked for, by file and place. */
export function candidates(args: Arguments): Mutant[] {
  const wanted = [...new Set(args.targets.flatMap(filesOf))].sort()
  const changed = args.since === undefined ? undefined : changedLines(args.since, wanted)
  return wanted
    .flatMap(findMutants)
    .filter(
      ({ file, line, operator }) =>
        args.targets.some((target) => isIn(target, file, line)) &&
        (args.operator === undefined || operator === args.operator) &&
        (changed === undefined || changed.get(file)?.has(line)),
    )
}

/** Returns as many of them as were asked for, without those that are no program. */
export function drawn(all: readonly Mutant[], args: Arguments): Mutant[] {
  return sample(all, args.sample, args.seed).filter(parses)
}

function filesOf({ path }: Target): string[] {
  if (statSync(path).isFile()) return [path]
  return globSync('**/*.ts', { cwd: path })
    .filter((name) => !/\.(test|d)\.ts$/.test(name))
    .map((name) => join(path, name).replaceAll(sep, '/'))
}

const isIn = ({ path, fromLine, toLine }: Target, file: string, line: number) =>
  (file === path || file.startsWith(`${path}/`)) && fromLine <= line && line <= toLine

/** Of each file, by what Git says. */
function changedLines(revision: string, files: readonly string[]): Map<string, Set<number>> {
  const args = ['diff', '--unified=0', '--no-color', '--no-ext-diff', '--relative', revision, '--', ...files]
  const lines = new Map<string, Set<number>>()
  let current = new Set<number>()
  for (const line of execFileSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 28 }).split('\n')) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)?.[1]
    if (file !== undefined) {
      current = new Set()
      lines.set(file, current)
    }
    const [, start, count = '1'] = /^@@ \S+ \+(\d+)(?:,(\d+))?/.exec(line) ?? []
    for (let at = 0; start !== undefined && at < Number(count); at++) current.add(Number(start) + at)
  }
  return lines
}
