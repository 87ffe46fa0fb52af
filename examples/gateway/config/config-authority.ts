import { setImmediate as nextTurn } from 'node:timers/promises'
import { ConfigError, type Logger } from 'express-model-gateway'
import { ConfigAuthority, configWarnings } from 'express-model-gateway/admin'
import {
  ConfigEntries,
  configHints,
  type ParsedAccount,
  type ParsedKey,
  unpricedModels,
} from 'express-model-gateway/config'
import { errorText } from '../errors.ts'
import type { DurableStores } from '../stores/stores.ts'
import type { ServedConfig } from './served-config.ts'

const AGAIN_MS = 5000
/** Most of them in one line of the log. */
const MAX_WARNINGS = 20

/** The parts that take a config over into the database. */
export interface TakeOverOptions {
  readonly stores: DurableStores
  readonly logger: Logger
  /** Whether this process logs differences, of those that share a database and a log. */
  readonly logs: () => boolean
}

/**
 * Takes accounts and keys of the config over into the database, and compares them: where the config rules, the database
 * becomes like it; else each difference is logged. What fails is tried again every five seconds.
 */
export class TakeOver {
  readonly authority: ConfigAuthority
  readonly #options: TakeOverOptions
  #again: NodeJS.Timeout | undefined
  /** The config that was adopted last, and the end of its turn. */
  #latest: ServedConfig | undefined
  #last: Promise<void> = Promise.resolve()
  #closed = false

  constructor(config: ServedConfig, options: TakeOverOptions) {
    const { accounts, adminKeys: keys, keys: directory, seeds } = options.stores
    this.authority = new ConfigAuthority({ accounts, keys, directory, seeds }, config)
    this.#options = options
  }

  /**
   * Takes the config of the start over. The stores were opened with it.
   *
   * @throws {ConfigError} if the config rules and the database could not be made like it: nothing that the config revokes
   *   may be let in.
   */
  async start(config: ServedConfig): Promise<void> {
    await this.#warn(config)
    if (config.authority !== 'config') void this.#untilCompared()
    else if (!(await this.#compare()))
      throw new ConfigError([
        'authority: the database could not be made what the config says; the log has the reason',
      ])
  }

  /** Takes another config over, behind the one before, unless a newer one has come by then. Never rejects. */
  adopt(next: ServedConfig): Promise<void> {
    this.#latest = next
    this.authority.adopt(next)
    this.#last = this.#last.then(() => (next === this.#latest ? this.#take(next) : undefined))
    return this.#last
  }

  async #take(next: ServedConfig): Promise<void> {
    const { stores, logger } = this.#options
    await this.#warn(next)
    try {
      await stores.seed(next)
    } catch (error) {
      if (this.#closed) return
      logger.error(
        { reason: errorText(error) },
        'new accounts and keys of the config are not in the database: send SIGHUP to try again',
      )
    }
    await this.#untilCompared()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#again)
  }

  async #untilCompared(): Promise<void> {
    clearTimeout(this.#again)
    if ((await this.#compare()) || this.#closed) return
    this.#again = setTimeout(() => void this.#untilCompared(), AGAIN_MS).unref()
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
          'config and database could not be compared: it is tried again',
        )
      return false
    }
  }

  async #warn(config: ServedConfig): Promise<void> {
    const { logger, logs } = this.#options
    if (!logs()) return
    const hints = configHints(config.catalog)
    if (hints.length > 0)
      logger.info({ count: hints.length, hints: hints.slice(0, MAX_WARNINGS) }, 'hints for the config')
    const unpriced = await unpricedOf(config)
    if (unpriced.length > 0)
      logger.warn(
        { count: unpriced.length, models: unpriced.slice(0, MAX_WARNINGS) },
        'models without a price cost prepaid accounts nothing',
      )
    const warnings = await warningsOf(config)
    if (warnings.length === 0) return
    const reported = { count: warnings.length, warnings: warnings.slice(0, MAX_WARNINGS) }
    logger.warn(reported, 'the config names models or regions that do not exist')
  }
}

/** Returns all warnings. Calls run between the pages of accounts and keys. */
async function warningsOf(config: ServedConfig): Promise<string[]> {
  const without = { ...config, accounts: [], keys: [], passThrough: [] }
  const warnings: string[] = []
  for (const accounts of ConfigEntries.of(config.accounts).read()) {
    warnings.push(...configWarnings({ ...without, accounts }))
    await nextTurn()
  }
  for (const keys of ConfigEntries.of(config.keys).read()) {
    warnings.push(...configWarnings({ ...without, keys }))
    await nextTurn()
  }
  return [...warnings, ...configWarnings({ ...without, passThrough: config.passThrough })]
}

/** Returns the models without a price. Of keys that may use the same models, one is enough. */
async function unpricedOf({ accounts: all, keys, catalog }: ServedConfig): Promise<string[]> {
  const accounts: ParsedAccount[] = []
  for (const page of ConfigEntries.of(all).read()) {
    accounts.push(...page.filter(({ balance }) => balance !== undefined))
    await nextTurn()
  }
  const prepaid = new Set(accounts.map(({ id }) => id))
  const byModels = new Map<string, ParsedKey>()
  for (const page of ConfigEntries.of(keys).read()) {
    for (const key of page)
      if (prepaid.has(key.account)) byModels.set(JSON.stringify(key.allowModels ?? null), key)
    await nextTurn()
  }
  return unpricedModels({ accounts, keys: [...byModels.values()], catalog })
}
