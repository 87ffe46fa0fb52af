import { type FSWatcher, type Stats, unwatchFile, watch, watchFile } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Logger } from 'express-model-gateway'

/** The quiet time after which a change counts as complete: editors write a file in several steps. */
const QUIET_MS = 150
/** The link that Kubernetes switches when it updates a mounted configuration. */
const MOUNTED = '..data'
/** How often the file itself is looked at, for what happens in other folders behind links, or on other machines. */
const LOOK_MS = 2000

/**
 * Calls back when a file changes. Watches the folder of the file, because editors replace a file by a new one, which a
 * watch on the file itself would not notice.
 */
function followFile(path: string, logger: Logger, onEvent: () => void): { close(): void } {
  let timer: NodeJS.Timeout | undefined
  const name = basename(path)
  const soon = (): void => {
    clearTimeout(timer)
    timer = setTimeout(onEvent, QUIET_MS)
  }
  const onChange = (_event: string, changed: string | null): void => {
    if (changed === null || changed === name || changed === MOUNTED) soon()
  }
  const onLook = (now: Stats, before: Stats): void => {
    if (now.ino !== before.ino || now.mtimeMs !== before.mtimeMs || now.size !== before.size) soon()
  }
  const onError = (error: unknown): void => {
    logger.warn(
      { err: error },
      'the folder of a file of the config is not watched: a change is noticed later',
    )
  }
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(dirname(path), { persistent: false }, onChange).on('error', onError)
  } catch (error) {
    onError(error)
  }
  watchFile(path, { persistent: false, interval: LOOK_MS }, onLook)
  return {
    close() {
      clearTimeout(timer)
      unwatchFile(path, onLook)
      watcher?.close()
    },
  }
}

/** Calls back when one of several files changes. */
export class WatchedFiles {
  readonly #logger: Logger
  readonly #onEvent: () => void
  #watches = new Map<string, { close(): void }>()

  constructor(logger: Logger, onEvent: () => void) {
    this.#logger = logger
    this.#onEvent = onEvent
  }

  /** Watches these files, and no others any more. */
  follow(paths: Iterable<string>): void {
    const before = this.#watches
    this.#watches = new Map()
    for (const path of paths) {
      const known = before.get(path) ?? followFile(path, this.#logger, this.#onEvent)
      this.#watches.set(path, known)
      before.delete(path)
    }
    for (const watch of before.values()) watch.close()
  }

  close(): void {
    this.follow([])
  }
}
