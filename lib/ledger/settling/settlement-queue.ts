import type { Logger } from '../../core/call/index.ts'
import { SharedBytes } from '../../core/memory/index.ts'
import type { Ledger, SettlementResult } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import type { LedgerHealth } from '../pool/ledger-health.ts'
import type { LedgerTimes } from '../pool/ledger-times.ts'
import { WalletsLocked } from '../wallets-locked.ts'
import type { SettleOutcome } from './bill.ts'
import type { Charge } from './charge.ts'
import { Deadlines, earliest } from './deadlines.ts'
import { LockedAccounts } from './locked-accounts.ts'
import { SettlementLane, type SettlementLaneDeps } from './settlement-lane.ts'
import { StallWatch } from './stall-watch.ts'
import type { Progress } from './waiting-charges.ts'

/** The parts that {@link SettlementQueue} works with. */
export interface SettlementQueueDeps {
  readonly ledger: Pick<Ledger, 'settle' | 'settlesRecords' | 'gathers' | 'settlesAtOnce'>
  readonly timed: SettlementLaneDeps['timed']
  readonly clock: Clock
  readonly health: LedgerHealth
  readonly logger: Logger
  readonly times: Pick<LedgerTimes, 'stallMs' | 'lateMs' | 'confirmMs' | 'distanceMs'>
  /** About the most bytes of charges that are not settled. */
  readonly maxQueueBytes: number
}

/** While only suspect charges are left, one new call per this time tests whether others are written. */
const TRIAL_MS = 2000

/**
 * Hands charges and voids to the ledger until they are settled, the charges of all accounts together.
 *
 * An account whose charges cannot be written while others are gets a lane of its own, in which they are tried again: its
 * rows are locked, the ledger does not answer, or it refuses a charge. Such a charge is logged and set aside, and tried again
 * now and then. Meanwhile only that account waits.
 */
export class SettlementQueue {
  /** Whether the ledger completes claims and writes log entries. */
  readonly settlesRecords: boolean
  readonly #deps: SettlementQueueDeps
  readonly #unconfirmed: Deadlines<Charge>
  readonly #main: SettlementLane
  readonly #locked: LockedAccounts
  readonly #stall: StallWatch
  readonly #silence: StallWatch
  readonly #progress: Progress = { settled: 0 }
  readonly #bytes: SharedBytes
  /** The oldest of what others have gone around, and how many were settled by then. */
  #around: { readonly since: number; readonly settled: number } | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #drained: (() => void)[] = []

  constructor(deps: SettlementQueueDeps) {
    this.#deps = deps
    this.settlesRecords = deps.ledger.settlesRecords
    this.#bytes = new SharedBytes(deps.maxQueueBytes)
    const { clock, times } = deps
    this.#unconfirmed = new Deadlines(
      clock,
      () => times.confirmMs,
      (charge) => charge.confirm?.('unconfirmed'),
    )
    const shared: Pick<SettlementLaneDeps, 'ledger' | 'timed' | 'clock' | 'progress' | 'onResult'> = {
      ledger: deps.ledger,
      timed: deps.timed,
      clock,
      progress: this.#progress,
      onResult: this.#conclude,
    }
    this.#locked = new LockedAccounts({ ...deps, ...shared, onConcluded: this.#concluded })
    this.#main = new SettlementLane({
      ...shared,
      distanceMs: () => times.distanceMs,
      mayHand: () => true,
      onHanded: this.#concluded,
      onFailed: (batch, error) => (error instanceof WalletsLocked ? this.#part(batch, error) : undefined),
      onAtFault: (charge, error) => {
        this.#locked.take(
          charge.account,
          this.#main.waiting.takeOut(({ account }) => account === charge.account),
        )
        this.#locked.setAside(charge, error)
      },
      onLeft: (charge, result) => this.#locked.settle(charge, result),
    })
    this.#silence = new StallWatch({
      clock,
      stallMs: () => times.lateMs,
      oldest: () => this.#main.unansweredSince,
      onChange: (silent) => {
        if (silent) this.#isolateUnanswered()
      },
    })
    this.#stall = new StallWatch({
      clock,
      stallMs: () => times.stallMs,
      oldest: () => earliest(this.#main.oldest, this.#doubtedSince()),
      onChange: (stalled) => deps.health.stall(stalled, this.#main.waiting.lastError),
    })
  }

  /** Whether the oldest charge has waited for too long. */
  get stalled(): boolean {
    return this.#stall.stalled
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    return this.#main.size + this.#locked.size
  }

  /** How long the oldest charge has waited, in milliseconds. */
  get oldestMs(): number {
    const oldest = earliest(this.#main.oldest, this.#doubtedSince())
    return oldest === undefined ? 0 : Math.max(0, this.#deps.clock.now() - oldest)
  }

  /** About how many bytes the charges take that are not settled, with those set aside. */
  get bytes(): number {
    return this.#bytes.size
  }

  get setAside(): number {
    return this.#locked.setAsideCount
  }

  /** The number of accounts whose charges wait apart from all others. */
  get lockedAccounts(): number {
    return this.#locked.accounts
  }

  /** Whether only suspect charges wait, so that another call would show whether others are written. */
  get onTrial(): boolean {
    return this.#main.waiting.areSuspect(this.#main.flying)
  }

  /** Whether the charge of a new call of an account has room here, and can be expected to be settled. */
  admits(account: string): boolean {
    if (this.#bytes.size > 0 && !this.#bytes.hasRoom(account)) return false
    const isLocked = this.#locked.accounts > 0 && !this.#locked.admits(account)
    if (!isLocked && !this.#stall.stalled) return true
    if (isLocked && !this.#locked.isOnTrial(account)) return false
    if (this.#stall.stalled && !this.onTrial) return false
    const now = this.#deps.clock.now()
    if (now - this.#triedAt < TRIAL_MS) return false
    this.#triedAt = now
    return true
  }

  /** Queues a charge or void. Returns at once if the ledger does; the result is `unconfirmed` if it is not known in time. */
  put(charge: Charge): SettleOutcome | Promise<SettleOutcome> {
    charge.since = this.#deps.clock.now()
    const lane = (this.#locked.accounts > 0 && this.#locked.laneOf(charge.account)) || this.#main
    lane.put(charge)
    return charge.result ? charge.outcomeOf(charge.result) : this.#await(charge)
  }

  #await(charge: Charge): Promise<SettleOutcome> {
    this.#stall.begin()
    this.#silence.begin()
    this.#unconfirmed.add(charge)
    this.#bytes.add(charge.account, charge.bytes)
    return new Promise((resolve) => {
      // Not a literal: V8 would allocate that as an old object, which keeps the whole call alive until a full collection.
      charge.confirm = resolve
    })
  }

  /** Removes a charge that was never handed to the ledger. */
  drop(charge: Charge): void {
    if (!this.#main.waiting.remove(charge) && !this.#locked.remove(charge)) return
    this.#bytes.remove(charge.account, charge.bytes)
    this.#unconfirmed.delete(charge)
    charge.confirm?.('unconfirmed')
    this.#concluded()
  }

  /** Resolves when all charges are settled that are not set aside. */
  drained(): Promise<void> {
    if (this.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  /** Hands the charges that were set aside over once more. {@link drained} waits for the results. */
  retryAside(): void {
    this.#locked.retryAside()
  }

  /** Logs each charge that the ledger has not confirmed, because the process ends. */
  logUnsettled(): void {
    const { waiting, flying } = this.#main
    for (const charge of [...flying, ...waiting.all(), ...this.#locked.all()]) {
      charge.logUnsettled(
        charge.error ?? waiting.lastError,
        'a settlement is not confirmed at the end of the process',
      )
    }
  }

  /**
   * Gives the accounts of charges that the ledger does not answer a lane of their own, so that the others go on. If
   * nothing is written then either, it is the ledger and no account, and everything waits for it.
   */
  #isolateUnanswered(): void {
    if (this.#doubtedSince() !== undefined) return
    const left = this.#main.leave(this.#deps.clock.now() - this.#deps.times.lateMs)
    const since = left.reduce<number | undefined>(
      (oldest, charge) => earliest(oldest, charge.since),
      undefined,
    )
    if (since === undefined) return
    this.#around = { since, settled: this.#progress.settled }
    const accounts = new Set(left.map(({ account }) => account))
    const apart = [...left, ...this.#main.waiting.takeOut(({ account }) => accounts.has(account))]
    for (const [account, charges] of Map.groupBy(apart, (charge) => charge.account))
      this.#locked.take(account, charges)
    this.#main.handSoon()
    this.#silence.passed()
  }

  /** Since when what others have gone around has waited, while nothing was written since. */
  #doubtedSince(): number | undefined {
    if (this.#around && this.#progress.settled > this.#around.settled) this.#around = undefined
    return this.#around?.since
  }

  /** Gives the accounts of locked wallets a lane of their own. Returns the charges that can be written. */
  #part(batch: readonly Charge[], held: WalletsLocked): readonly Charge[] | undefined {
    const accounts = new Set(
      batch.filter((charge) => charge.isOn(held.wallets)).map(({ account }) => account),
    )
    if (accounts.size === 0) return undefined
    const isHeld = ({ account }: Charge) => accounts.has(account)
    const apart = [...batch.filter(isHeld), ...this.#main.waiting.takeOut(isHeld)]
    for (const [account, charges] of Map.groupBy(apart, (charge) => charge.account)) {
      this.#locked.lock(account, charges, held)
    }
    return batch.filter((charge) => !isHeld(charge))
  }

  readonly #conclude = (charge: Charge, result: SettlementResult): void => {
    charge.result = result
    const { confirm } = charge
    // Otherwise it was settled at once, and has waited for nothing.
    if (confirm) {
      this.#unconfirmed.delete(charge)
      this.#bytes.remove(charge.account, charge.bytes)
    }
    // The waiting call gets the result last, after everything that follows from it.
    charge.settled(result, charge.unanswered > 0)
    confirm?.(charge.outcomeOf(result))
  }

  readonly #concluded = (): void => {
    if (this.#stall.stalled) this.#stall.passed()
    if (this.#silence.stalled) this.#silence.passed()
    // Other unanswered charges have had to wait for a sign that some are answered.
    if (this.#silence.stalled) this.#isolateUnanswered()
    if (this.#drained.length === 0 || this.size > 0) return
    const drained = this.#drained
    this.#drained = []
    for (const resolve of drained) resolve()
  }
}
