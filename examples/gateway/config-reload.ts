import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type GatewayConfig, type Logger } from 'express-model-gateway'
import { watchFile } from './config-file.ts'
import { needsRestart } from './live-config.ts'
import { configOf, readConfigFile, type Settings } from './settings.ts'

/** What a reload works with. */
export interface ConfigReloadOptions {
  readonly settings: Settings
  /** The path of the config. */
  readonly file: string
  /** What the gateway was started with. */
  readonly source: object
  readonly logger: Logger
  /** Puts a config that is valid in force. */
  apply(source: object, config: GatewayConfig): Promise<void>
}

/** What the file was found to hold. */
type Found = { readonly source: object } | { readonly faults: readonly string[] }

/**
 * Takes a changed config file over while the gateway runs: validated first, then whole. A bad one changes nothing and
 * is told with a line of the log for each fault.
 */
export class ConfigReload {
  readonly #options: ConfigReloadOptions
  readonly #started: GatewayConfig
  #inForce: Found
  #seen: Found
  #last: Promise<void> = Promise.resolve()
  #watched: { close(): void } | undefined

  constructor(options: ConfigReloadOptions) {
    this.#options = options
    this.#started = configOf(options.source, options.settings)
    this.#inForce = { source: options.source }
    this.#seen = this.#inForce
  }

  /** Reloads whenever the file holds something else. */
  watch(): void {
    const { file, logger } = this.#options
    this.#watched = watchFile(file, logger, () => void this.#queue(false))
  }

  /** Reloads, whether the file has changed or not. */
  now(): void {
    this.#queue(true)
  }

  close(): void {
    this.#watched?.close()
  }

  /** One after the other, so that the last one read is the one in force. */
  #queue(asked: boolean): void {
    const { logger } = this.#options
    this.#last = this.#last
      .then(() => this.#reload(asked))
      .catch((error: unknown) => logger.error({ err: error }, 'config not reloaded'))
  }

  async #reload(asked: boolean): Promise<void> {
    const found = await this.#read()
    const known = isDeepStrictEqual(found, this.#seen)
    this.#seen = found
    if (!asked && (known || isDeepStrictEqual(found, this.#inForce))) return
    const { settings, logger, apply } = this.#options
    if ('faults' in found) {
      for (const fault of found.faults) logger.error({ fault }, 'config not reloaded, all stays as it is')
      return
    }
    const config = configOf(found.source, settings)
    const members = needsRestart(this.#started, config)
    if (members.length > 0)
      logger.warn({ members }, 'changed in the config, but only a restart takes it over')
    this.#inForce = found
    await apply(found.source, config)
    const { models, lines } = config.catalog
    logger.info({ models: models.size, lines: lines.length }, 'config reloaded')
  }

  async #read(): Promise<Found> {
    const { file, settings } = this.#options
    try {
      const source = await readConfigFile(file)
      configOf(source, settings)
      return { source }
    } catch (error) {
      if (error instanceof ConfigError) return { faults: error.faults }
      throw error
    }
  }
}
