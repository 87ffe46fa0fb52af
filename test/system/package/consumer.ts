import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Environment,
  type Exit,
  type GatewayProcess,
  runProgram,
  startProgram,
} from '../../support/gateway-process.ts'
import { manifestOf, npm, PATH, type PackageName, pack, ROOT, run } from './packages.ts'

const { name, exports, devDependencies } = manifestOf('toolkit')

/** Subpaths that nobody imports for what they export: the manifest, and the program behind the commands. */
const NOT_IMPORTED = ['./package.json', './gateway/bin']

/** The specifiers that a program imports: `express-model-gateway`, `express-model-gateway/route`, … */
export const specifiers = Object.keys(exports)
  .filter((subpath) => !NOT_IMPORTED.includes(subpath))
  .map((subpath) => name + subpath.slice(1))

/** Somebody else's project, in an empty folder far from this one, with packed tarballs installed and what they depend on. */
export class Consumer {
  readonly folder = mkdtempSync(join(tmpdir(), 'consumer-'))
  readonly installed = join(this.folder, 'node_modules', name)

  /** @param others further packages, in the versions of this repository. */
  constructor(packages: readonly PackageName[] = ['toolkit'], others: readonly string[] = []) {
    const tarballs = pack(packages, this.folder)
    this.write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
    const flags = [
      '--omit=dev',
      '--prefer-offline',
      '--ignore-scripts',
      '--loglevel=error',
      '--strict-peer-deps',
    ]
    const versions = others.map((other) => `${other}@${devDependencies[other]}`)
    npm(this.folder, ['install', ...flags, ...tarballs, ...versions])
  }

  write(file: string, text: string) {
    writeFileSync(join(this.folder, file), text)
  }

  /** Runs Node here as any program would: without the condition that leads to the sources. */
  node(args: string[]) {
    return run(this.folder, process.execPath, args)
  }

  typecheck(...args: string[]) {
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
    return this.node([tsc, '--noEmit', '--pretty', 'false', ...args])
  }

  /** Starts a command that a package brings, as npx does, and waits until the gateway is ready. */
  start(command: string, args: readonly string[] = [], env: Environment = {}): Promise<GatewayProcess> {
    return startProgram([this.command(command), ...args], this.folder, { PATH, ...env })
  }

  /** Runs a command that a package brings, and which ends by itself. */
  run(command: string, args: readonly string[] = [], env: Environment = {}): Promise<Exit> {
    return runProgram([this.command(command), ...args], this.folder, { PATH, ...env })
  }

  command(name: string): string {
    return join(this.folder, 'node_modules', '.bin', name)
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
