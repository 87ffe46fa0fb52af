import { randomUUID } from 'node:crypto'
import { ChangeLoop } from '../leases/change-loop.ts'
import { LeaseKeeper } from '../leases/lease-keeper.ts'
import { LeaseSweeper } from '../leases/lease-sweeper.ts'
import { LedgerContact } from '../leases/ledger-contact.ts'
import type { WalletLease } from '../leases/wallet-lease.ts'
import { Deadlines } from '../settling/deadlines.ts'
import { LedgerOutage } from '../settling/ledger-outage.ts'
import { SettlementQueue } from '../settling/settlement-queue.ts'
import {
  AccountDesk,
  type DeskSurroundings,
  type ReserveRefusal,
  unavailable,
  type Waiter,
} from './account-desk.ts'
import type { Clock } from './clock.ts'
import { type LeasePoolOptions, withDefaults } from './lease-pool-options.ts'
import type { Reservation } from './reservation.ts'

export type { ReserveRefusal } from './account-desk.ts'
export type { LeasePoolOptions } from './lease-pool-options.ts'

/** A call that wants money to be held. */
export interface ReserveClaim {
  readonly account: string
  /** Whose quota counts too; null = nobody's. */
  readonly key: string | null
  /** The most the call can cost, in nano-units. */
  readonly amount: bigint
}

/** Figures of a {@link LeasePool}, for metrics. Those that are counted are counted over its life. */
export interface LeasePoolStats {
  /** How often the ledger went away. */
  readonly outages: number
  /** Settlements that the ledger has not confirmed. */
  readonly queued: number
  /** Settlements that fail while others are written; each was told to the log. */
  readonly setAside: number
  /** Calls that wait to be admitted. */
  readonly waiting: number
  /** Accounts and keys that are remembered: those used in the last ten seconds. */
  readonly wallets: number
  /** Leases that this process has. */
  readonly leases: number
  /** Leases that were swept although this process lives. */
  readonly leasesLost: number
  /** Charges that drew on such a lease. */
  readonly overruns: number
  /** Leases of others that this process returned, because nobody renewed them. */
  readonly leasesSwept: number
}

const TICK_MS = 1000
/** Accounts seen to in one turn of the event loop. */
const AT_A_STRETCH = 500

/**
 * This process's share of the ledger. Admits calls by holding the most that they can cost in leases, in memory, and
 * settles what they did cost.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const pool = new LeasePool({ ledger })
 * const held = await pool.reserve({ account: 'acme', key: 'key_acme', amount: 2_000_000n })
 * if ('refused' in held) throw new Error(held.refused)
 * held.release()
 */
export class LeasePool {
  readonly #clock: Clock
  readonly #desks = new Map<string, AccountDesk>()
  readonly #around: DeskSurroundings
  readonly #queue: SettlementQueue
  readonly #contact: LedgerContact
  readonly #changes: ChangeLoop<WalletLease>
  readonly #keeper: LeaseKeeper
  readonly #sweeper: LeaseSweeper
  readonly #outage: LedgerOutage
  #callOffTick: () => void
  #closing = false

  constructor(options: LeasePoolOptions) {
    const given = withDefaults(options)
    const { ledger, clock, logger, admissionMs, stallMs } = given
    const judge = (error?: unknown) => this.#outage.judge(this.away, error)
    this.#clock = clock
    this.#outage = new LedgerOutage(given)
    this.#contact = new LedgerContact(clock, stallMs, judge)
    this.#queue = new SettlementQueue({ ...given, onStallChange: judge })
    this.#changes = new ChangeLoop({
      ...given,
      lateMs: admissionMs,
      contact: this.#contact,
      onAnswered: serveAll,
    })
    const generation = randomUUID()
    let leases = 0
    this.#around = {
      clock,
      logger,
      queue: this.#queue,
      contact: this.#contact,
      admissions: new Deadlines(clock, admissionMs, giveUp),
      onLedgerAway: given.onLedgerAway,
      figures: { lost: 0, overruns: 0 },
      ask: (wallet) => this.#changes.ask(wallet),
      newLeaseId: () => `${generation}.${++leases}`,
      isClosing: () => this.#closing,
    }
    this.#keeper = new LeaseKeeper({ ledger, clock, contact: this.#contact, wallets: () => this.#wallets() })
    this.#sweeper = new LeaseSweeper({
      ...given,
      isAway: () => this.away,
      kept: () => this.#openLeases(),
    })
    this.#callOffTick = this.#tickLater()
  }

  /**
   * Holds money for a call, on both wallets or on none: at once where the leases cover it, else when the ledger has
   * answered, which is waited for no longer than `admissionMs`.
   *
   * @throws TypeError when the amount is no bigint, or the account or key no text.
   * @throws RangeError when the amount is below 0.
   */
  reserve(claim: ReserveClaim): Reservation | ReserveRefusal | Promise<Reservation | ReserveRefusal> {
    const { account, key, amount } = claim
    assertClaim(claim)
    if (amount < 0n) throw new RangeError(`a call cannot cost ${amount} nano-units`)
    if (this.#closing || !this.#queue.admits()) return unavailable(amount)
    let desk = this.#desks.get(account)
    if (!desk) {
      desk = new AccountDesk(account, this.#around)
      this.#desks.set(account, desk)
    }
    return desk.reserve(key, amount)
  }

  /** Whether charges wait for too long, or the ledger does not answer what leases are asked for. */
  get away(): boolean {
    return this.#queue.stalled || this.#contact.away
  }

  /**
   * Whether, while {@link away}, it takes a call to find out that the ledger is back: nothing waits but charges that may
   * be at fault themselves, and now and then a call is admitted to see whether others are written.
   */
  get onTrial(): boolean {
    return this.#queue.stalled && this.#queue.onTrial && !this.#contact.away
  }

  get stats(): LeasePoolStats {
    const { figures, admissions } = this.#around
    return {
      outages: this.#outage.count,
      queued: this.#queue.size,
      setAside: this.#queue.setAside,
      waiting: admissions.size,
      wallets: [...this.#wallets()].length,
      leases: this.#openLeases().size,
      leasesLost: figures.lost,
      overruns: figures.overruns,
      leasesSwept: this.#sweeper.swept,
    }
  }

  /**
   * Admits no more calls, waits until what was charged is settled, tries once more what was set aside, and gives all
   * leases back. What calls that still run hold goes back when they end. What the ledger has not taken by then is told to
   * the log, charge by charge.
   *
   * @param withinMs how long it may take, in milliseconds. Defaults to 10000.
   */
  async close(withinMs = 10_000): Promise<void> {
    this.#closing = true
    for (const desk of this.#desks.values()) desk.refuseAll()
    const callOff = { timer: () => {} }
    const late = new Promise<void>((resolve) => {
      callOff.timer = this.#clock.after(withinMs, resolve, true)
    })
    await Promise.race([late, this.#settleAndReturn()])
    callOff.timer()
    this.#callOffTick()
    this.#keeper.close()
    this.#sweeper.close()
    this.#queue.tellUnsettled()
  }

  async #settleAndReturn(): Promise<void> {
    await this.#queue.drained()
    this.#queue.retryAside()
    await this.#queue.drained()
    for (const wallet of this.#wallets()) if (wallet.lease) this.#changes.ask(wallet)
    await this.#changes.idle()
  }

  *#wallets(): Iterable<WalletLease> {
    for (const desk of this.#desks.values()) yield* desk.wallets()
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
    for (const [id, desk] of this.#desks) {
      if (!desk.tick()) this.#desks.delete(id)
      if (++seen % AT_A_STRETCH === 0) await new Promise(setImmediate)
    }
  }
}

/** What is none would break whatever adds it up, for everybody. */
function assertClaim({ account, key, amount }: ReserveClaim): void {
  if (typeof amount !== 'bigint')
    throw new TypeError(
      `the most that a call can cost must be a bigint of nano-units, and is ${String(amount)}`,
    )
  if (typeof account !== 'string' || account === '')
    throw new TypeError(`the account that pays must be named by a text, and is ${String(account)}`)
  if (key !== null && typeof key !== 'string')
    throw new TypeError(`the key whose quota counts must be a text or null, and is ${String(key)}`)
}

/** Nobody waits for longer. */
function giveUp(waiter: Waiter): void {
  waiter.done = true
  waiter.answer(unavailable(waiter.amount))
}

/** Each account once, with all of its wallets that the ledger has told of. */
function serveAll(wallets: readonly WalletLease[]): void {
  for (const [desk, told] of Map.groupBy(wallets, ({ waiting }) => waiting)) desk.serve(told)
}
