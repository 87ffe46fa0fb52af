import { type Logger, quietLogger } from '../../core/call/index.ts'
import { withinMemory } from '../../core/memory/index.ts'
import {
  aFunction,
  aLogger,
  aNumber,
  anObjectWith,
  aString,
  checkOptions,
  MAX_TIMER_MS,
  type OptionRule,
  type OptionRules,
  oneOf,
  required,
} from '../../core/options/index.ts'
import type { Ledger } from '../ledger.ts'
import { type Clock, systemClock } from './clock.ts'
import { LedgerTimes, type PoolTimes } from './ledger-times.ts'

/** Options of `LeasePool`. Times are milliseconds. */
export interface LeasePoolOptions extends PoolTimes {
  /** The ledger that stores the money. */
  ledger: Ledger
  /** Logs outages of the ledger and each charge that cannot be written. Defaults to the console. */
  logger?: Logger
  /** The name of this process in the list of leases. Defaults to a random name. */
  owner?: string
  /**
   * The treatment of an answer whose charge is not confirmed in time: `hold` does not finish it; `deliver` does, and the
   * charge is lost if the process is killed before it is written. Defaults to `hold`.
   */
  onStoreError?: 'hold' | 'deliver'
  /**
   * About the most bytes of charges that the ledger has not confirmed; an account may have a fourth of what is free. No
   * call is admitted beyond that, because no charge is dropped. Defaults to 64 MiB,
   * less where the process may take less than 1 GiB.
   */
  maxQueueBytes?: number
  /** Called when the ledger goes away and when it is back, for metrics. Defaults to nothing. */
  onStoreChange?: (away: boolean) => void
  /** The clock, for tests. Defaults to the machine's. */
  clock?: Clock
}

const aTime: OptionRule = {
  be: `milliseconds above 0, at most ${MAX_TIMER_MS} (24 days)`,
  accepts: (value) => typeof value === 'number' && value > 0 && value <= MAX_TIMER_MS,
}
const OPERATIONS = ['change', 'renew', 'settle', 'leases', 'sweep'] as const
const RULES: OptionRules<LeasePoolOptions> = {
  ledger: required(anObjectWith('a ledger, such as new MemoryLedger()', ...OPERATIONS)),
  logger: aLogger,
  owner: aString(),
  onStoreError: oneOf('hold', 'deliver'),
  admissionMs: aTime,
  stallMs: aTime,
  confirmMs: aTime,
  maxQueueBytes: aNumber('at least 1', 1),
  onStoreChange: aFunction(),
  clock: anObjectWith('a clock', 'now', 'wall', 'after', 'limit'),
}

/** @throws TypeError if an option is invalid. */
export function withDefaults(options: LeasePoolOptions): Required<Omit<LeasePoolOptions, keyof PoolTimes>> & {
  readonly times: LedgerTimes
} {
  checkOptions('LeasePool', options, RULES)
  const { clock = systemClock } = options
  return {
    ledger: options.ledger,
    onStoreError: options.onStoreError ?? 'hold',
    times: new LedgerTimes(options, clock),
    maxQueueBytes: options.maxQueueBytes ?? withinMemory(64 * 1024 * 1024),
    logger: quietLogger(options.logger),
    owner: options.owner ?? `process-${crypto.randomUUID()}`,
    onStoreChange: options.onStoreChange ?? (() => {}),
    clock,
  }
}
