import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { CleanUp } from './clean-up.ts'
import { temporaryFolder } from './gateway-process.ts'

/** Whether a test may have a disk of its own, which needs rights that not everybody has who may run tests. */
export function mayMount(): boolean {
  const tried = 'd=$(mktemp -d) && mount -t tmpfs -o size=1m gateway "$d" && umount "$d" && rmdir "$d"'
  return spawnSync('sh', ['-c', tried], { stdio: 'ignore' }).status === 0
}

/** Mounts a disk of 64 MiB, and returns its folder. @param options of `mount`, such as `ro`. */
export async function smallDisk(t: CleanUp, options: readonly string[] = []): Promise<string> {
  const { path, remove } = await temporaryFolder()
  const disk = join(path, 'disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', ['size=64m', ...options].join(), 'gateway', disk])
  t.after(async () => {
    // Also while the gateway of a test that failed still has it open.
    execFileSync('umount', ['-l', disk])
    await remove()
  })
  return disk
}

/** The file that {@link fillDisk} makes. */
export const BALLAST = 'ballast'

/** Fills the disk of a folder to its last byte. */
export function fillDisk(folder: string): void {
  const file = openSync(join(folder, BALLAST), 'w')
  try {
    for (let bytes = 64 * 1024; bytes >= 1; ) {
      try {
        writeSync(file, Buffer.alloc(bytes))
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
        bytes /= 2
      }
    }
  } finally {
    closeSync(file)
  }
}
