import { randomUUID } from 'node:crypto'
import { Deadlines } from '../settling/deadlines.ts'
import { SettlementQueue } from '../settling/settlement-queue.ts'
import { AdmissionQueue, type PoolDeps, unavailable, type Waiter } from './admission-queue.ts'
import type { Clock } from './clock.ts'
import { LeaseChanges } from './lease-changes.ts'
import { type LeasePoolOptions, withDefaults } from './lease-pool-options.ts'
import { LeaseRenewal } from './lease-renewal.ts'
import { LeaseSweeper } from './lease-sweeper.ts'
import { LedgerHealth } from './ledger-health.ts'
import type { Reservation, ReserveClaim, ReserveRefusal } from './reservation.ts'
import { TimelyLedger } from './timely-ledger.ts'
import type { WalletLease } from './wallet-lease.ts'

export type { LeasePoolOptions } from './lease-pool-options.ts'
export type { ReserveClaim, ReserveRefusal } from './reservation.ts'

/** Figures of a {@link LeasePool}, for metrics. Counters start with the pool. */
export interface LeasePoolStats {
  /** How often the ledger went away. */
  readonly outages: number
  /** Settlements that the ledger has not confirmed. */
  readonly queued: number
  /** About how many bytes all of these take, with those set aside. */
  readonly queuedBytes: number
  /** How long the oldest of them has waited, in milliseconds. */
  readonly queuedMs: number
  /** Settlements that fail while others are written. Each has been logged. */
  readonly setAside: number
  /** Accounts whose charges wait apart, because they cannot be written while others are. */
  readonly lockedAccounts: number
  /** Calls that wait to be admitted. */
  readonly waiting: number
  /** Accounts and keys in memory: those that were used in the last ten seconds. */
  readonly wallets: number
  /** Open leases of this process. */
  readonly leases: number
  /** Leases of this process that were swept while it was running. */
  readonly leasesLost: number
  /** Charges on such leases. */
  readonly overruns: number
  /** Leases of other processes that this one returned, because they were not renewed. */
  readonly leasesSwept: number
}

const TICK_MS = 1000
/** Accounts handled in one turn of the event loop. */
const AT_A_STRETCH = 500

/**
 * The share of the ledger that this process has. It admits calls by holding their highest cost in leases, in memory,
 * and settles their actual cost.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const pool = new LeasePool({ ledger })
 * const held = await pool.reserve({ account: 'acme', key: 'key_acme', amount: 2_000_000n })
 * if ('refused' in held) throw new Error(held.refused)
 * held.release()
 */
export class LeasePool {
  readonly #clock: Clock
  /** By account. */
  readonly #queues = new Map<string, AdmissionQueue>()
  readonly #deps: PoolDeps & { closing: boolean }
  readonly #settlements: SettlementQueue
  readonly #health: LedgerHealth
  readonly #changes: LeaseChanges
  readonly #renewal: LeaseRenewal
  readonly #sweeper: LeaseSweeper
  readonly #flush: () => Promise<void> | undefined
  #callOffTick: () => void

  constructor(options: LeasePoolOptions) {
    const defaulted = withDefaults(options)
    const ledger = new TimelyLedger(defaulted.ledger, defaulted.clock, defaulted.times)
    const given = { ...defaulted, ledger }
    const { clock, logger, times, onStoreError } = given
    const health = new LedgerHealth(given)
    this.#flush = () => defaulted.ledger.flush?.()
    const settlements = new SettlementQueue({ ...defaulted, health, timed: ledger.timed.bind(ledger) })
    const changes = new LeaseChanges({ ...given, health })
    const generation = randomUUID()
    let leases = 0
    this.#clock = clock
    this.#health = health
    this.#settlements = settlements
    this.#changes = changes
    this.#deps = {
      clock,
      logger,
      health,
      settlements,
      onStoreError,
      admissions: new Deadlines(clock, () => times.admissionMs, giveUp),
      figures: { lost: 0, overruns: 0 },
      closing: false,
      reserve: (claim) => this.reserve(claim),
      ask: (wallet) => changes.ask(wallet),
      newLeaseId: () => `${generation}.${++leases}`,
    }
    this.#renewal = new LeaseRenewal({ ...given, health, wallets: () => this.#wallets() })
    this.#sweeper = new LeaseSweeper({ ...given, health, kept: () => this.#openLeases() })
    this.#callOffTick = this.#tickLater()
  }

  /**
   * Holds money for a call, on all of its wallets or on none. It returns at once if the leases cover the amount; else when
   * the ledger has answered, after at most `admissionMs`.
   *
   * @throws TypeError if the amount is not a bigint, or the account or key is not a string.
   * @throws RangeError if the amount is below 0.
   */
  reserve(claim: ReserveClaim): Reservation | ReserveRefusal | Promise<Reservation | ReserveRefusal> {
    const { account, key, amount, budgets, settles = true } = claim
    const isNamed = typeof account === 'string' && account !== '' && (key === null || typeof key === 'string')
    if (!isNamed || typeof amount !== 'bigint' || amount < 0n) throw unusable(claim)
    if (this.#deps.closing || (settles && !this.#settlements.admits(account))) return unavailable(amount)
    return (this.#queues.get(account) ?? this.#addQueue(account)).reserve(key, amount, budgets)
  }

  /**
   * Whether nothing could be spent when the ledger last reported the wallets of a claim; undefined if it has not
   * reported all of them. It asks no ledger, so that a deposit since is unknown.
   */
  seemsEmpty({ account, key, budgets }: Omit<ReserveClaim, 'amount'>): boolean | undefined {
    return this.#queues.get(account)?.seemsEmpty(key, budgets)
  }

  /** Whether charges have waited for too long, or the ledger does not answer lease changes. */
  get away(): boolean {
    return this.#health.away
  }

  /**
   * Whether, while the ledger is {@link away}, a call is needed to find out that it is back: only charges wait that may
   * be at fault themselves, and now and then a call is admitted to see whether others are written.
   */
  get onTrial(): boolean {
    return this.#settlements.stalled && this.#settlements.onTrial && !this.#health.silent
  }

  get stats(): LeasePoolStats {
    const { figures, admissions } = this.#deps
    return {
      outages: this.#health.outages,
      queued: this.#settlements.size,
      queuedBytes: this.#settlements.bytes,
      queuedMs: this.#settlements.oldestMs,
      setAside: this.#settlements.setAside,
      lockedAccounts: this.#settlements.lockedAccounts,
      waiting: admissions.size,
      wallets: [...this.#wallets()].length,
      leases: this.#openLeases().size,
      leasesLost: figures.lost,
      overruns: figures.overruns,
      leasesSwept: this.#sweeper.swept,
    }
  }

  /**
   * Stops admitting calls, waits until all charges are settled, retries those that were set aside, and returns all
   * leases. Money of calls that still run is returned when they end. Each charge that the ledger has not taken by then
   * is logged.
   *
   * @param withinMs how long it may take, in milliseconds. Defaults to 10000.
   */
  async close(withinMs = 10_000): Promise<void> {
    this.#deps.closing = true
    for (const queue of this.#queues.values()) queue.refuseAll()
    const callOff = { timer: () => {} }
    const late = new Promise<void>((resolve) => {
      callOff.timer = this.#clock.after(withinMs, resolve, true)
    })
    await Promise.race([late, this.#settleAndReturn()])
    callOff.timer()
    this.#callOffTick()
    this.#renewal.close()
    this.#sweeper.close()
    this.#settlements.logUnsettled()
  }

  async #settleAndReturn(): Promise<void> {
    await this.#settlements.drained()
    this.#settlements.retryAside()
    await this.#settlements.drained()
    for (const wallet of this.#wallets()) if (wallet.lease) this.#changes.ask(wallet)
    await this.#changes.idle()
    await this.#flush()
  }

  #addQueue(account: string): AdmissionQueue {
    const queue = new AdmissionQueue(account, this.#deps)
    this.#queues.set(account, queue)
    return queue
  }

  *#wallets(): Iterable<WalletLease> {
    for (const queue of this.#queues.values()) yield* queue.wallets()
  }

  #openLeases(): Set<string> {
    const open = new Set<string>()
    for (const { lease } of this.#wallets()) if (lease) open.add(lease.id)
    return open
  }

  #tickLater(): () => void {
    return this.#clock.after(TICK_MS, () => {
      this.#callOffTick = this.#tickLater()
      void this.#tick()
    })
  }

  async #tick(): Promise<void> {
    let seen = 0
    for (const [id, queue] of this.#queues) {
      if (!queue.tick()) this.#queues.delete(id)
      if (++seen % AT_A_STRETCH === 0) await new Promise(setImmediate)
    }
  }
}

/** Returns the error for an invalid claim, which would corrupt the sums of all others. */
function unusable({ account, key, amount }: ReserveClaim): Error {
  if (typeof amount !== 'bigint')
    return new TypeError(
      `the most that a call can cost must be a bigint of nano-units, and is ${String(amount)}`,
    )
  if (typeof account !== 'string' || account === '')
    return new TypeError(`the account that pays must be named by a text, and is ${String(account)}`)
  if (key !== null && typeof key !== 'string')
    return new TypeError(`the key whose quota counts must be a text or null, and is ${String(key)}`)
  return new RangeError(`a call cannot cost ${amount} nano-units`)
}

/** Refuses a call that has waited for too long. */
function giveUp(waiter: Waiter): void {
  waiter.done = true
  waiter.answer(unavailable(waiter.amount))
}
