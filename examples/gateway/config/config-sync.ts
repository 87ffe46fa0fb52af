import { setImmediate } from 'node:timers/promises'
import { ConfigError, type Logger } from 'express-model-gateway'
import { ConfigAuthority } from 'express-model-gateway/admin'
import { ConfigEntries, ConfigWarnings, configHints, type EntryList } from 'express-model-gateway/config'
import { errorText } from '../errors.ts'
import type { DurableStores } from '../stores/stores.ts'
import type { ServedConfig } from './served-config.ts'

const AGAIN_MS = 5000
/** The most warnings in one line of the log. */
const MAX_WARNINGS = 20

/** The parts that take a config over into the database. */
export interface ConfigSyncOptions {
  readonly stores: DurableStores
  readonly logger: Logger
  /** Whether this process logs differences, of those that share a database and a log. */
  readonly logs: () => boolean
}

/** A config that is not taken over yet, and the steps that are done. */
interface NextConfig {
  readonly config: ServedConfig
  readonly isWarned: boolean
  readonly isSeeded: boolean
}

/**
 * Takes accounts and keys of the config over into the database, and compares them: where the config rules, the database
 * becomes like it; else each difference is logged. What fails is tried again every five seconds.
 */
export class ConfigSync {
  readonly authority: ConfigAuthority
  readonly #options: ConfigSyncOptions
  #again: NodeJS.Timeout | undefined
  /** The config to take over next. A newer one replaces it, because each may be large. */
  #next: NextConfig | undefined
  /** The last config whose warnings are logged. */
  #warned: ServedConfig | undefined
  #last: Promise<void> = Promise.resolve()
  #closed = false

  constructor(config: ServedConfig, options: ConfigSyncOptions) {
    const { accounts, adminKeys: keys, seeds } = options.stores
    this.authority = new ConfigAuthority({ accounts, keys, seeds }, config)
    this.#options = options
  }

  /**
   * Takes the config of the start over. The stores were opened with it.
   *
   * @throws {ConfigError} if the config rules and the database could not be made like it: nothing that the config revokes
   *   may be let in.
   */
  async start(config: ServedConfig): Promise<void> {
    void this.#warn(config)
    if (config.authority !== 'config') void this.#take({ config, isWarned: true, isSeeded: true })
    else if (!(await this.#compare()))
      throw new ConfigError([
        'authority: the database could not be made what the config says; the log has the reason',
      ])
  }

  /** Takes another config over, behind the one before, unless a newer one has come by then. Never rejects. */
  adopt(config: ServedConfig): Promise<void> {
    this.authority.adopt(config)
    return this.#take({ config, isWarned: false, isSeeded: false })
  }

  #take(next: NextConfig): Promise<void> {
    clearTimeout(this.#again)
    this.#next = next
    this.#last = this.#last.then(() => this.#takeNext())
    return this.#last
  }

  async #takeNext(): Promise<void> {
    const next = this.#next
    if (!next || this.#closed) return
    this.#next = undefined
    if (!next.isWarned) void this.#warn(next.config)
    const isSeeded = next.isSeeded || (await this.#seed(next.config))
    // A key that the config revokes does not wait until the new ones are added.
    const isCompared = await this.#compare()
    if ((isSeeded && isCompared) || this.#next || this.#closed) return
    const again = { ...next, isWarned: true, isSeeded }
    this.#again = setTimeout(() => void this.#take(again), AGAIN_MS).unref()
  }

  /** Adds new accounts and keys; returns whether that has been done. Never rejects. */
  async #seed(config: ServedConfig): Promise<boolean> {
    const { stores, logger } = this.#options
    try {
      await stores.seed(config)
      return true
    } catch (error) {
      if (!this.#closed)
        logger.error(
          { reason: errorText(error) },
          'new accounts and keys of the config could not be added to the database: the gateway tries again',
        )
      return false
    }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#again)
  }

  /** Compares config and database; returns whether that has been done. Never rejects. */
  async #compare(): Promise<boolean> {
    const { logger, logs } = this.#options
    try {
      const left = await this.authority.enforce()
      for (const { kind, id, difference, members } of logs() ? left : [])
        logger.warn({ kind, id, difference, members }, 'config and database differ')
      return true
    } catch (error) {
      if (!this.#closed)
        logger.error(
          { reason: errorText(error) },
          'config and database could not be compared: the gateway tries again',
        )
      return false
    }
  }

  /** Logs hints and warnings. Of many accounts and keys it reads a page at a time, and calls run in between. */
  async #warn(config: ServedConfig): Promise<void> {
    const { logger, logs } = this.#options
    if (!logs()) return
    const hints = configHints(config.catalog)
    if (hints.length > 0)
      logger.info({ count: hints.length, hints: hints.slice(0, MAX_WARNINGS) }, 'hints for the config')
    this.#warned = config
    const isOver = (): boolean => this.#closed || this.#warned !== config
    const warnings = new ConfigWarnings(config)
    await inTurns(config.accounts, (some) => warnings.addAccounts(some), isOver)
    await inTurns(config.keys, (some) => warnings.addKeys(some), isOver)
    if (isOver()) return
    const unpriced = warnings.unpriced()
    if (unpriced.length > 0)
      logger.warn(
        { count: unpriced.length, models: unpriced.slice(0, MAX_WARNINGS) },
        'models without a price cost prepaid accounts nothing',
      )
    const { unknown } = warnings
    if (unknown.length > 0)
      logger.warn(
        { count: unknown.length, warnings: unknown.slice(0, MAX_WARNINGS) },
        'the config names models or regions that do not exist',
      )
  }
}

/** Reads the first page at once, and each other one after calls have run. */
async function inTurns<Entry extends { readonly id: string }>(
  list: EntryList<Entry>,
  read: (entries: readonly Entry[]) => void,
  isOver: () => boolean,
): Promise<void> {
  let isFirst = true
  for (const entries of ConfigEntries.of(list).read()) {
    if (!isFirst) await setImmediate()
    if (isOver()) return
    isFirst = false
    read(entries)
  }
}
