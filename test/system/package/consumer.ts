import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

type Manifest = { name: string; exports: Record<string, unknown>; devDependencies: Record<string, string> }
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest

/** What a program imports: `express-model-gateway`, `express-model-gateway/route`, … */
export const specifiers = Object.keys(manifest.exports)
  .filter((subpath) => subpath !== './package.json')
  .map((subpath) => manifest.name + subpath.slice(1))

/** Somebody else's project, in an empty folder far from this one, with the packed tarball installed. */
export class Consumer {
  readonly folder = mkdtempSync(join(tmpdir(), 'consumer-'))
  readonly installed = join(this.folder, 'node_modules', manifest.name)

  constructor() {
    // --ignore-scripts: the caller has just built, and the tarball must hold that build.
    const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', this.folder]
    const [tarball] = JSON.parse(npm(root, pack)) as [{ filename: string }]
    this.write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
    // ioredis: only who imports ./redis needs it, and this project imports everything. pg: only who opens a Postgres.
    const others = ['express', 'ioredis', '@types/express', '@types/node'].map(
      (name) => `${name}@${manifest.devDependencies[name]}`,
    )
    const quiet = ['--prefer-offline', '--ignore-scripts', '--loglevel=error', '--strict-peer-deps']
    npm(this.folder, ['install', ...quiet, `./${tarball.filename}`, ...others])
  }

  write(file: string, text: string) {
    writeFileSync(join(this.folder, file), text)
  }

  /** Runs Node here as any program would: without the condition that leads to the sources. */
  node(args: string[]) {
    return run(this.folder, process.execPath, args)
  }

  typecheck(...args: string[]) {
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    return this.node([tsc, '--noEmit', '--pretty', 'false', ...args])
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const npm = (cwd: string, args: string[]) => run(cwd, 'npm', ['--prefix', cwd, ...args])

/** The output of a command; what it printed is in the error when it fails. */
function run(cwd: string, command: string, args: string[]) {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')}\n${stdout ?? ''}${stderr ?? ''}`, { cause })
  }
}
