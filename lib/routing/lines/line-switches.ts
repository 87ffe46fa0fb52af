import type { Logger } from '../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  aPollTime,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { BackgroundLoop } from '../../core/timing/index.ts'
import type { LineRegistry } from './line-registry.ts'

/** Options of {@link LineSwitches}. */
export interface LineSwitchesOptions {
  /** The store of the switches: a `SqlLineSwitchStore`, or an object with these methods. */
  store: {
    /** Returns whether each line that operators have switched is on. */
    all(): Promise<ReadonlyMap<string, boolean>>
    /** Returns how often operators have lifted the rests of each line. */
    lifts(): Promise<ReadonlyMap<string, number>>
  }
  /** The registry of `route`, whose lines are switched, and whose rests are lifted. */
  lines: LineRegistry
  /** How often the store is read, in milliseconds; at most 4000: changes take effect within 5 s. Defaults to 2000. */
  pollMs?: number
  /** Logs outages of the store. Defaults to the console. */
  logger?: Logger
  /** Called when an outage of the store begins and ends, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
}

const RULES: OptionRules<LineSwitchesOptions> = {
  store: required(anObjectWith('a LineSwitchStore, such as a SqlLineSwitchStore', 'all', 'lifts')),
  lines: required(anObjectWith('the LineRegistry that route has', 'liftRests')),
  pollMs: aPollTime,
  logger: aLogger,
  onStoreChange: aFunction(),
}

const STORE_TIMEOUT_MS = 1000

/**
 * Applies the switches of a shared store to the lines of this process, and lifts rests as the store says. During an
 * outage of the store lines stay as they are.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const lines = new LineRegistry()
 * const switches = new LineSwitches({ store, lines })
 * await switches.refresh()
 */
export class LineSwitches {
  readonly #store: LineSwitchesOptions['store']
  readonly #lines: LineRegistry
  readonly #guard: StoreGuard
  readonly #polling: BackgroundLoop
  #lifts: ReadonlyMap<string, number> = new Map()

  constructor(options: LineSwitchesOptions) {
    checkOptions('LineSwitches', options, RULES)
    const { store, lines, pollMs = 2000, logger, onStoreChange } = options
    this.#store = store
    this.#lines = lines
    this.#guard = new StoreGuard({
      name: 'line switches',
      effect: 'lines stay switched as they are',
      logger,
      timeoutMs: STORE_TIMEOUT_MS,
      onStoreChange,
    })
    this.#polling = new BackgroundLoop(() => this.#read(), pollMs)
  }

  /**
   * Reads the store now.
   *
   * @throws {StoreAway} if the store does not answer; lines stay as they are.
   */
  refresh(): Promise<void> {
    return this.#polling.runNow()
  }

  close(): void {
    void this.#polling.close()
  }

  async #read(): Promise<void> {
    const read = () => Promise.all([this.#store.all(), this.#store.lifts()])
    const [switches, lifts] = await this.#guard.insist(read)
    if (this.#polling.closed) return
    this.#lines.applySwitches(switches)
    for (const [line, count] of lifts) if (count !== this.#lifts.get(line)) this.#lines.liftRests(line)
    this.#lifts = lifts
  }
}
