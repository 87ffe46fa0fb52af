import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Archive } from './archive.ts'

const PART = '.part'

/**
 * Keeps what {@link SqlRetention} exports in a folder. A file has its name only when it is whole and on the disk.
 *
 * @example
 * new SqlRetention(db, { archive: new FolderArchive('/var/lib/gateway/archive') })
 */
export class FolderArchive implements Archive {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  async write(name: string, chunks: AsyncIterable<Uint8Array>, confirm: () => Promise<void>): Promise<void> {
    const path = join(this.#folder, name)
    const folder = dirname(path)
    const made = await mkdir(folder, { recursive: true, mode: 0o700 })
    await removeParts(folder, basename(path))
    const part = join(folder, `.${basename(path)}.${randomUUID()}${PART}`)
    try {
      const file = await open(part, 'wx', 0o600)
      try {
        for await (const chunk of chunks) await file.writeFile(chunk)
        await file.sync()
      } finally {
        await file.close()
      }
      await confirm()
      await rename(part, path)
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
    await syncFolder(folder)
    // A folder that was made is kept by those above it.
    for (let path = folder; made !== undefined && path.length >= made.length; path = dirname(path))
      await syncFolder(dirname(path))
  }
}

/** Removes what processes have left that were ended in the middle. */
async function removeParts(folder: string, name: string): Promise<void> {
  for (const left of await readdir(folder))
    if (left.startsWith(`.${name}.`) && left.endsWith(PART)) await rm(join(folder, left), { force: true })
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
