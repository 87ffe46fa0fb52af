import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { needsRestart } from './live-config.ts'
import { WatchedFiles } from './watched-files.ts'

export interface ConfigReloadOptions {
  /** The files that the config comes from, beside those of its secrets. */
  readonly files: readonly string[]
  readonly started: GatewayConfig
  readonly logger: Logger
  /** Reads the config. Rejects with a ConfigError. */
  read(): Promise<object>
  /** Loads a config. Rejects with a ConfigError. */
  load(source: object): Promise<GatewayConfig>
  apply(config: GatewayConfig): Promise<void>
}

/** What was read: a valid config with its secrets, or faults. */
type Content = { readonly resolved: object } | { readonly faults: readonly string[] }

/** When a config is read again of which a file could not be read: it may be readable then, though nothing changes. */
const AGAIN_MS = 5000
/** What such a fault says, of the config, its environment or a secret. */
const UNREADABLE = /can(?:not)? be read/

/** What a config names beside its own file. */
type Named = Pick<GatewayConfig, 'secretFiles'>

/**
 * Applies a changed config, or changed secrets, while the gateway runs. The config is validated first. If it is not
 * valid, nothing changes and each fault is logged.
 */
export class ConfigReload {
  readonly #options: ConfigReloadOptions
  #applied: Content
  #lastRead: Content
  #appliedFiles: Named['secretFiles']
  #last: Promise<void> = Promise.resolve()
  #watched: WatchedFiles | undefined
  #again: NodeJS.Timeout | undefined

  constructor(options: ConfigReloadOptions) {
    this.#options = options
    this.#applied = { resolved: options.started.resolved }
    this.#lastRead = this.#applied
    this.#appliedFiles = options.started.secretFiles
  }

  /** Reloads the config whenever the content of its file, or of a file of its secrets, changes. */
  watch(): void {
    this.#watched = new WatchedFiles(this.#options.logger, () => void this.#queue(false))
    this.#follow(this.#options.started)
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
  replace(load: () => Promise<GatewayConfig>): Promise<void> {
    return this.#inTurn(async () => this.#adopt(await load()))
  }

  close(): void {
    clearTimeout(this.#again)
    this.#watched?.close()
    this.#watched = undefined
  }

  /** @param named what a config names that is in use, or would be but for its faults. */
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

  #adopt(config: GatewayConfig): Promise<void> {
    this.#applied = { resolved: config.resolved }
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
    this.#lastRead = content
    if (!forced && (unchanged || isDeepStrictEqual(content, this.#applied))) return
    const { logger, started } = this.#options
    if ('faults' in content || !config) {
      for (const fault of 'faults' in content ? content.faults : [])
        logger.error({ fault }, 'config not reloaded, all stays as it is')
      return
    }
    const members = needsRestart(started, config)
    if (members.length > 0)
      logger.warn({ members }, 'changed in the config, but only a restart takes it over')
    await this.#adopt(config)
    const { models, lines } = config.catalog
    logger.info({ models: models.size, lines: lines.length }, 'config reloaded')
  }

  async #read(): Promise<{ content: Content; config?: GatewayConfig }> {
    const { read, load } = this.#options
    try {
      const config = await load(await read())
      return { content: { resolved: config.resolved }, config }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      this.#follow(error)
      return { content: { faults: error.faults } }
    }
  }
}
