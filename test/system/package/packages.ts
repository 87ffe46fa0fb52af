import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** The members of a `package.json` that the tests read. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly [member: string]: unknown
}

/** The folders of the packages, from the root of the repository. */
export const FOLDERS = { toolkit: '.', server: 'examples/deploy/package' } as const

export type PackageName = keyof typeof FOLDERS

export function manifestOf(name: PackageName): Manifest {
  return JSON.parse(readFileSync(join(ROOT, FOLDERS[name], 'package.json'), 'utf8'))
}

/** This process's Node first: npm and the commands of packages begin with `#!/usr/bin/env node`. */
export const PATH = `${dirname(process.execPath)}:${process.env.PATH}`

/**
 * Packs packages into a folder, and returns the paths of the tarballs. No scripts are run: the caller has just built, and
 * the tarballs must hold that build.
 */
export function pack(names: readonly PackageName[], into: string): string[] {
  const folders = names.map((name) => (name === 'toolkit' ? '.' : `./${FOLDERS[name]}`))
  const packed = npm(ROOT, ['pack', '--json', '--ignore-scripts', '--pack-destination', into, ...folders])
  return (JSON.parse(packed) as { filename: string }[]).map(({ filename }) => join(into, filename))
}

export const npm = (cwd: string, args: readonly string[]): string =>
  run(cwd, 'npm', ['--prefix', cwd, ...args])

/** The output of a command; what it printed is in the error when it fails. */
export function run(
  cwd: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = { ...process.env, PATH },
): string {
  try {
    return execFileSync(command, args, {
      cwd,
      encoding: 'utf8',
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')}\n${stdout ?? ''}${stderr ?? ''}`, { cause })
  }
}
