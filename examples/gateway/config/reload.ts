import { type Stats, unwatchFile, watchFile } from 'node:fs'
import { stat } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import type { RequestHandler } from 'express'
import { type Call, ConfigError, type Logger } from 'express-model-gateway'
import type { Catalog } from 'express-model-gateway/catalog'
import { type ConfigMembers, membersOf, type ServedConfig } from './served-config.ts'

/** The members of a config that a running gateway can replace. */
type Replaceable = Pick<ConfigMembers, 'catalog' | 'routing' | 'passThrough' | 'guards'>

/** The members of a config whose changes need a restart. */
const RESTART_MEMBERS = [
  'region',
  'bodyLimitBytes',
  'bodyBudgetBytes',
  'uploadsPerKey',
  'metrics',
  'lookupsPerMinute',
  'onStoreError',
  'tokens',
  'onLedgerAway',
  'trustProxy',
  'cors',
] as const satisfies readonly (keyof ConfigMembers)[]

/** Returns the members that have changed since the start and need a restart. */
export function needsRestart(started: ConfigMembers, next: ConfigMembers): string[] {
  const members: string[] = RESTART_MEMBERS.filter(
    (member) => !isDeepStrictEqual(started[member], next[member]),
  )
  const exportsAlike = isDeepStrictEqual(started.retention.export, next.retention.export)
  return exportsAlike ? members : [...members, 'retention.export']
}

/** Returns a source with the members of another one that need a restart. */
export function keptUntilRestart(started: object, next: object): object {
  const kept: Record<string, unknown> = { ...next }
  const from: Record<string, unknown> = { ...started }
  for (const member of RESTART_MEMBERS) {
    if (from[member] === undefined) delete kept[member]
    else kept[member] = from[member]
  }
  const { export: exported, ...retention } = (kept.retention ?? {}) as Record<string, unknown>
  const exportedBefore = (from.retention as { export?: unknown } | undefined)?.export
  if (exported !== undefined || exportedBefore !== undefined)
    kept.retention = { ...retention, ...(exportedBefore !== undefined && { export: exportedBefore }) }
  return kept
}

const CATALOG = Symbol('catalog')

/** A call with its catalogue, so that a reload does not affect running calls. */
type CallWithCatalog = Call & { [CATALOG]?: Catalog }

/** Holds the part of the config that can change while the gateway runs. */
export class LiveConfig {
  #current: Replaceable
  readonly #followers: ((next: Replaceable) => void)[] = []

  constructor(config: Replaceable) {
    this.#current = config
  }

  /** Returns the catalogue of a call, which stays the same until the call ends; without a call, the current one. */
  readonly catalog = (call?: Call): Catalog => {
    if (!call) return this.#current.catalog
    const begun = call as CallWithCatalog
    begun[CATALOG] ??= this.#current.catalog
    return begun[CATALOG]
  }

  /** Returns a middleware that is created again whenever a member of the config, or the routing, changes. */
  following<Member extends 'routing' | 'passThrough' | 'guards'>(
    member: Member,
    make: (value: Replaceable[Member], routing: Replaceable['routing']) => RequestHandler,
  ): RequestHandler {
    let made = this.#current
    let handler = make(made[member], made.routing)
    this.#followers.push((next) => {
      if (isDeepStrictEqual([made[member], made.routing], [next[member], next.routing])) return
      made = next
      handler = make(next[member], next.routing)
    })
    return (req, res, next) => handler(req, res, next)
  }

  replace(next: Replaceable): void {
    this.#current = next
    for (const follow of this.#followers) follow(next)
  }
}

export interface ConfigReloadOptions {
  /** The files that the config comes from, beside those of its secrets. */
  readonly files: readonly string[]
  readonly started: ServedConfig
  readonly logger: Logger
  /** Reads the config. Rejects with a ConfigError. */
  read(): Promise<object>
  /** Loads a config. Rejects with a ConfigError. */
  load(source: object): Promise<ServedConfig>
  /** Applies a config; never rejects. Models, lines and prices are applied when it returns. */
  apply(config: ServedConfig): Promise<void>
}

/** The result of a read: the parts of a valid config that make the others, or faults. */
type Content = Pick<ServedConfig, 'resolved' | 'accounts' | 'keys'> | { readonly faults: readonly string[] }

function contentOf({ resolved, accounts, keys }: ServedConfig): Content {
  return { resolved, accounts, keys }
}

/** How soon a config is read again if one of its files could not be read. No change shows that it has become readable. */
const AGAIN_MS = 5000
/** The words of such a fault, about the config, its environment or a secret. */
const UNREADABLE = /can(?:not)? be read/

/** The files that a config names. */
type Named = Pick<ServedConfig, 'secretFiles'>

/**
 * Applies a changed config, or changed secrets, while the gateway runs. The config is validated first. If it is not
 * valid, nothing changes and each fault is logged.
 */
export class ConfigReload {
  readonly #options: Omit<ConfigReloadOptions, 'started'>
  readonly #started: ConfigMembers
  #applied: Content
  #lastRead: Content
  #appliedFiles: Named['secretFiles']
  #last: Promise<void> = Promise.resolve()
  #watched: WatchedFiles | undefined
  #again: NodeJS.Timeout | undefined

  constructor({ started, ...options }: ConfigReloadOptions) {
    this.#options = options
    this.#started = membersOf(started)
    this.#applied = contentOf(started)
    this.#lastRead = this.#applied
    this.#appliedFiles = started.secretFiles
  }

  /** Reloads the config whenever the content of its file, or of a file of its secrets, changes. */
  watch(): void {
    this.#watched = new WatchedFiles(() => this.#queue(false))
    this.#follow(this.#started)
  }

  /** Reloads the config if it is no longer what was read at the start. */
  ifChanged(): void {
    this.#queue(false)
  }

  /** Reloads the config, even if no file has changed. */
  now(): void {
    this.#queue(true)
  }

  /** Applies another config, behind the reloads that have begun. Rejects as `load` does. */
  async replace(load: () => Promise<ServedConfig>): Promise<void> {
    let applied: Promise<void> | undefined
    await this.#inTurn(async () => {
      applied = this.#adopt(await load())
    })
    await applied
  }

  close(): void {
    clearTimeout(this.#again)
    this.#watched?.close()
    this.#watched = undefined
  }

  /** Watches the files that a config names, also those of a config with faults. */
  #follow({ secretFiles }: Named): void {
    this.#watched?.follow(new Set([...this.#options.files, ...this.#appliedFiles, ...secretFiles]))
  }

  #queue(forced: boolean): void {
    const { logger } = this.#options
    this.#inTurn(() => this.#reload(forced)).catch((error: unknown) =>
      logger.error({ err: error }, 'config not reloaded'),
    )
  }

  /** Runs reloads one after another, so that the last one read is applied last. */
  #inTurn(run: () => Promise<void>): Promise<void> {
    const done = this.#last.then(run)
    this.#last = done.catch(() => {})
    return done
  }

  #adopt(config: ServedConfig): Promise<void> {
    this.#applied = contentOf(config)
    this.#lastRead = this.#applied
    this.#appliedFiles = config.secretFiles
    this.#follow(config)
    return this.#options.apply(config)
  }

  async #reload(forced: boolean): Promise<void> {
    clearTimeout(this.#again)
    const { content, config } = await this.#read()
    if ('faults' in content && this.#watched && content.faults.some((fault) => UNREADABLE.test(fault)))
      this.#again = setTimeout(() => this.#queue(false), AGAIN_MS).unref()
    const unchanged = isDeepStrictEqual(content, this.#lastRead)
    // Of the same content, one copy is kept: it may be large.
    this.#lastRead = isDeepStrictEqual(content, this.#applied) ? this.#applied : content
    if (!forced && (unchanged || this.#lastRead === this.#applied)) return
    const { logger } = this.#options
    if ('faults' in content || !config) {
      for (const fault of 'faults' in content ? content.faults : [])
        logger.error({ fault }, 'config not reloaded; the running config stays in effect')
      return
    }
    const members = needsRestart(this.#started, config)
    if (members.length > 0) logger.warn({ members }, 'these config members need a restart')
    // Many accounts and keys take a while: the prices of a next reload do not wait for them.
    const { models, lines } = config.catalog
    void this.#adopt(config).then(() => {
      logger.info({ models: models.size, lines: lines.length }, 'config reloaded')
    })
  }

  async #read(): Promise<{ content: Content; config?: ServedConfig }> {
    const { read, load } = this.#options
    try {
      const config = await load(await read())
      return { content: contentOf(config), config }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      this.#follow(error)
      return { content: { faults: error.faults } }
    }
  }
}

/** The times of a file system may be this much behind. */
const COARSE_MS = 1000

/** Whether one of some files was written or replaced after a time, in milliseconds since the epoch. A missing file counts as unchanged. */
export async function changedSince(time: number, files: readonly string[]): Promise<boolean> {
  const found = await Promise.all(files.map((file) => stat(file).catch(() => undefined)))
  return found.some((status) => status !== undefined && status.ctimeMs > time - COARSE_MS)
}

/** How often a file is checked. This also finds changes behind links, in mounts, or on another machine. */
const CHECK_INTERVAL_MS = 100
/** The time without a change before the file is read, longer than between two checks: editors write a file in several steps. */
const QUIET_MS = 150

/** Calls back when one of several files changes. */
class WatchedFiles {
  readonly #onChange: () => void
  #paths: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** Watches these files, and no others any more. */
  follow(paths: ReadonlySet<string>): void {
    for (const path of this.#paths) if (!paths.has(path)) unwatchFile(path, this.#onCheck)
    for (const path of paths)
      if (!this.#paths.has(path))
        watchFile(path, { persistent: false, interval: CHECK_INTERVAL_MS }, this.#onCheck)
    this.#paths = paths
  }

  close(): void {
    clearTimeout(this.#timer)
    this.follow(new Set())
  }

  readonly #onCheck = (now: Stats, before: Stats): void => {
    if (now.ino === before.ino && now.mtimeMs === before.mtimeMs && now.size === before.size) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onChange, QUIET_MS)
  }
}
