/** Installs Portkey's gateway outside the repository, where it is found again. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const PACKAGE = '@portkey-ai/gateway'
const VERSION = '1.15.2'
const INSTALLS_WITHIN_MS = 180_000

/**
 * Sets `PORTKEY` for the target of that name.
 *
 * @returns false, and says why, if the package cannot be had.
 */
export async function preparePortkey(): Promise<boolean> {
  const folder = join(tmpdir(), `bench-portkey-${VERSION}`)
  const program = join(folder, 'node_modules', PACKAGE, 'build/start-server.js')
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true })
    const flags = ['--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']
    try {
      await promisify(execFile)('npm', ['install', ...flags, `${PACKAGE}@${VERSION}`], {
        timeout: INSTALLS_WITHIN_MS,
      })
    } catch (error) {
      const [reason = ''] = (error as Error).message.split('\n').slice(1)
      console.error(`without portkey: ${PACKAGE}@${VERSION} cannot be installed. ${reason}`)
      return false
    }
  }
  process.env.PORTKEY = program
  return true
}
