import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Logger } from 'express-model-gateway'

/** Editors write a file in several steps. */
const SETTLED_MS = 150
/** What a mounted configuration is switched by: its file is a link into a folder of that name. */
const MOUNTED = '..data'

/**
 * Calls back when something happens to a file. Watches its folder, because editors put a new file into the place of the
 * old one, which a watch on the file itself would go with.
 */
export function watchFile(path: string, logger: Logger, onEvent: () => void): { close(): void } {
  let timer: NodeJS.Timeout | undefined
  const name = basename(path)
  const notice = (_event: string, changed: string | null): void => {
    if (changed !== null && changed !== name && changed !== MOUNTED) return
    clearTimeout(timer)
    timer = setTimeout(onEvent, SETTLED_MS)
  }
  const unwatched = (error: unknown): void => {
    logger.warn({ err: error }, 'the config file is not watched: send SIGHUP when it has changed')
  }
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(dirname(path), notice).on('error', unwatched)
  } catch (error) {
    unwatched(error)
  }
  return {
    close() {
      clearTimeout(timer)
      watcher?.close()
    },
  }
}
