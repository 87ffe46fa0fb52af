import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { readConfigFile } from './config-file.ts'
import { needsRestart } from './live-config.ts'
import { configOf, type Settings } from './settings.ts'
import { watchFile } from './watch-file.ts'

/** Options of {@link ConfigReload}. */
export interface ConfigReloadOptions {
  readonly settings: Settings
  /** The path of the config. */
  readonly file: string
  /** The config at the start of the gateway. */
  readonly source: object
  readonly logger: Logger
  /** Applies a valid config. */
  apply(source: object, config: GatewayConfig): Promise<void>
}

/** The content of the file: a valid config, or faults. */
type Content = { readonly source: object } | { readonly faults: readonly string[] }

/**
 * Applies a changed config file while the gateway runs. The config is validated first. If it is not valid, nothing changes
 * and each fault is logged.
 */
export class ConfigReload {
  readonly #options: ConfigReloadOptions
  readonly #started: GatewayConfig
  #applied: Content
  #lastRead: Content
  #last: Promise<void> = Promise.resolve()
  #watched: { close(): void } | undefined

  constructor(options: ConfigReloadOptions) {
    this.#options = options
    this.#started = configOf(options.source, options.settings)
    this.#applied = { source: options.source }
    this.#lastRead = this.#applied
  }

  /** Reloads the config whenever the content of the file changes. */
  watch(): void {
    const { file, logger } = this.#options
    this.#watched = watchFile(file, logger, () => void this.#queue(false))
  }

  /** Reloads the config, even if the file has not changed. */
  now(): void {
    this.#queue(true)
  }

  close(): void {
    this.#watched?.close()
  }

  /** Runs reloads one after another, so that the last one read is applied last. */
  #queue(forced: boolean): void {
    const { logger } = this.#options
    this.#last = this.#last
      .then(() => this.#reload(forced))
      .catch((error: unknown) => logger.error({ err: error }, 'config not reloaded'))
  }

  async #reload(forced: boolean): Promise<void> {
    const content = await this.#read()
    const unchanged = isDeepStrictEqual(content, this.#lastRead)
    this.#lastRead = content
    if (!forced && (unchanged || isDeepStrictEqual(content, this.#applied))) return
    const { settings, logger, apply } = this.#options
    if ('faults' in content) {
      for (const fault of content.faults) logger.error({ fault }, 'config not reloaded, all stays as it is')
      return
    }
    const config = configOf(content.source, settings)
    const members = needsRestart(this.#started, config)
    if (members.length > 0)
      logger.warn({ members }, 'changed in the config, but only a restart takes it over')
    this.#applied = content
    await apply(content.source, config)
    const { models, lines } = config.catalog
    logger.info({ models: models.size, lines: lines.length }, 'config reloaded')
  }

  async #read(): Promise<Content> {
    const { file, settings } = this.#options
    try {
      const source = await readConfigFile(file, settings.configOrigin)
      configOf(source, settings)
      return { source }
    } catch (error) {
      if (error instanceof ConfigError) return { faults: error.faults }
      throw error
    }
  }
}
