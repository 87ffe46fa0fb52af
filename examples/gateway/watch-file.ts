import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Logger } from 'express-model-gateway'

/** The quiet time after which a change counts as complete: editors write a file in several steps. */
const QUIET_MS = 150
/** The link that Kubernetes switches when it updates a mounted configuration. */
const MOUNTED = '..data'

/**
 * Calls back when a file changes. Watches the folder of the file, because editors replace a file by a new one, which a
 * watch on the file itself would not notice.
 */
export function watchFile(path: string, logger: Logger, onEvent: () => void): { close(): void } {
  let timer: NodeJS.Timeout | undefined
  const name = basename(path)
  const onChange = (_event: string, changed: string | null): void => {
    if (changed !== null && changed !== name && changed !== MOUNTED) return
    clearTimeout(timer)
    timer = setTimeout(onEvent, QUIET_MS)
  }
  const onError = (error: unknown): void => {
    logger.warn({ err: error }, 'the config file is not watched: send SIGHUP when it has changed')
  }
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(dirname(path), onChange).on('error', onError)
  } catch (error) {
    onError(error)
  }
  return {
    close() {
      clearTimeout(timer)
      watcher?.close()
    },
  }
}
