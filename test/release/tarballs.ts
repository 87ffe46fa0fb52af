import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { PACKAGES } from './release-faults.ts'

/**
 * Builds and packs both packages into a folder, with further fields in their manifests. The tree stays as it is.
 *
 * @returns the paths of the tarballs, in the order in which they are published.
 */
export function packWith(fields: object, root: string, into: string): string[] {
  const npm = (cwd: string, ...args: string[]) =>
    JSON.parse(execFileSync('npm', [...args, '--json', '--silent'], { cwd, encoding: 'utf8' })) as [
      { filename: string },
    ]
  return PACKAGES.map((folder, i) => {
    const unpacked = join(into, `${i}`)
    mkdirSync(unpacked)
    const [{ filename }] = npm(join(root, folder), 'pack', '--pack-destination', unpacked)
    execFileSync('tar', ['--extract', '--gzip', '--file', filename], { cwd: unpacked })
    const manifest = join(unpacked, 'package', 'package.json')
    const filled = { ...JSON.parse(readFileSync(manifest, 'utf8')), ...fields }
    writeFileSync(manifest, `${JSON.stringify(filled, null, 2)}\n`)
    const [packed] = npm(join(unpacked, 'package'), 'pack', '--ignore-scripts', '--pack-destination', into)
    return join(into, packed.filename)
  })
}

/** Returns what publint and arethetypeswrong find in the tarballs. */
export function tarballFaults([toolkit = '', server = '']: readonly string[], root: string): string[] {
  // The server has no exports, which is all that arethetypeswrong looks at.
  return [
    ...findingsOf(root, 'publint', ['run', toolkit, '--strict']),
    ...findingsOf(root, 'publint', ['run', server, '--strict']),
    ...findingsOf(root, 'attw', [toolkit, '--profile', 'esm-only', '--no-color', '--no-emoji']),
  ]
}

function findingsOf(root: string, program: string, args: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', program), args, {
    encoding: 'utf8',
  })
  if (status === 0) return []
  const tarballs = args.filter((arg) => arg.endsWith('.tgz')).map((path) => basename(path))
  return [`${program} ${tarballs}:\n${stdout}${stderr}`]
}
