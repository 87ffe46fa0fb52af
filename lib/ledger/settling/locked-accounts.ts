import type { Logger } from '../../core/call/index.ts'
import type { SettlementResult } from '../ledger.ts'
import type { LedgerTimes } from '../pool/ledger-times.ts'
import { WalletsLocked } from '../wallets-locked.ts'
import type { Charge } from './charge.ts'
import { SettlementLane, type SettlementLaneDeps } from './settlement-lane.ts'

/** The parts that {@link LockedAccounts} works with. */
export interface LockedAccountsDeps
  extends Pick<SettlementLaneDeps, 'ledger' | 'timed' | 'clock' | 'progress' | 'onResult'> {
  readonly logger: Logger
  /** How long the oldest charge of an account may wait, and after how long an operation counts as late. */
  readonly times: Pick<LedgerTimes, 'stallMs' | 'lateMs' | 'distanceMs'>
  /** Runs when a charge is no longer waited for. */
  readonly onConcluded: () => void
}

/** Lanes that use the ledger at the same time, and may wait for a lock there, on a connection. */
const AT_ONCE = 2
/** The same, with those that get no answer, and those whose answer may be on its way. */
const AT_MOST = 6

interface LockedAccount {
  readonly lane: SettlementLane
  readonly since: number
  isLogged: boolean
}

/** The accounts whose charges cannot be written while others are, each with a lane of its own. */
export class LockedAccounts {
  readonly #deps: LockedAccountsDeps
  readonly #locked = new Map<string, LockedAccount>()
  /** Lanes whose turn it is not yet. */
  readonly #queue = new Set<SettlementLane>()
  #willRecheck = false

  constructor(deps: LockedAccountsDeps) {
    this.#deps = deps
  }

  get accounts(): number {
    return this.#locked.size
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    let size = 0
    for (const { lane } of this.#locked.values()) size += lane.size
    return size
  }

  get setAsideCount(): number {
    let count = 0
    for (const { lane } of this.#locked.values()) count += lane.waiting.setAside
    return count
  }

  laneOf(account: string): SettlementLane | undefined {
    return this.#locked.get(account)?.lane
  }

  /** Whether the charge of a new call can be expected to be settled. */
  admits(account: string): boolean {
    const oldest = this.laneOf(account)?.oldest
    return oldest === undefined || this.#deps.clock.now() - oldest < this.#deps.times.stallMs
  }

  /** Whether only suspect charges of an account wait, so that another call of it would show whether others are written. */
  isOnTrial(account: string): boolean {
    const lane = this.laneOf(account)
    return lane?.waiting.areSuspect(lane.flying) ?? false
  }

  /** Takes charges of an account that may be written. */
  take(account: string, charges: readonly Charge[]): void {
    const { lane } = this.#of(account)
    lane.waiting.putBack(charges)
    lane.handSoon()
  }

  /** Takes charges of an account whose rows are locked. */
  lock(account: string, charges: readonly Charge[], error: unknown): void {
    const { lane } = this.#of(account)
    lane.waiting.lastError = error
    lane.waiting.holdBack(charges, this.#deps.clock.now())
    lane.handSoon()
  }

  /** Takes a charge that failed alone while others were written, and logs it. */
  setAside(charge: Charge, error: unknown): void {
    const { lane } = this.#of(charge.account)
    if (charge.setAside()) {
      charge.failures = 0
      lane.waiting.putBack([charge])
    } else {
      lane.waiting.keepAside(charge, this.#deps.clock.now())
      if (!charge.isLogged) {
        charge.logUnsettled(error, 'a settlement fails while others are written: it is set aside')
      }
      charge.isLogged = true
      charge.error = error
    }
    lane.handSoon()
    this.#deps.onConcluded()
  }

  /** Removes a charge that waits. Returns false if it does not wait here. */
  remove(charge: Charge): boolean {
    if (!this.laneOf(charge.account)?.waiting.remove(charge)) return false
    this.#forgetIfDone(charge.account)
    return true
  }

  /** Takes a late answer to a charge that waits here to be handed over again. */
  settle(charge: Charge, result: SettlementResult): void {
    // A charge that is handed over as a void by now, or with one, was not answered by this.
    if (charge.kind !== 'charge' || !this.remove(charge)) return
    this.#deps.onResult(charge, result)
    this.#handed(charge.account)
  }

  retryAside(): void {
    for (const { lane } of this.#locked.values()) {
      lane.waiting.readmit(this.#deps.clock.now())
      lane.hand()
    }
  }

  *all(): Iterable<Charge> {
    for (const { lane } of this.#locked.values()) {
      yield* lane.flying
      yield* lane.waiting.all()
    }
  }

  #of(account: string): LockedAccount {
    const known = this.#locked.get(account)
    if (known) return known
    const { ledger, timed, clock, progress, onResult } = this.#deps
    const lane: SettlementLane = new SettlementLane({
      ledger,
      timed,
      clock,
      progress,
      onResult,
      distanceMs: () => 0,
      mayHand: (asking) => this.#mayHand(asking),
      onHanded: () => this.#handed(account),
      onFailed: (batch, error) => {
        if (!(error instanceof WalletsLocked)) return undefined
        lane.waiting.holdBack(batch, clock.now())
        this.#log(account, error)
        return []
      },
      onAtFault: (charge, error) => this.setAside(charge, error),
      onLeft: () => {},
    })
    const held = { lane, since: clock.now(), isLogged: false }
    this.#locked.set(account, held)
    return held
  }

  #mayHand(asking: SettlementLane): boolean {
    // A lane that has nothing left takes no other's turn.
    if (asking.size === 0 && asking.waiting.setAside === 0) return true
    const { lateMs, distanceMs } = this.#deps.times
    const now = this.#deps.clock.now()
    const ages = [...this.#locked.values()].flatMap(({ lane: { unansweredSince: since } }) =>
      since === undefined ? [] : [now - since],
    )
    const waiting = ages.filter((age) => age >= distanceMs && age < lateMs)
    if (waiting.length < AT_ONCE && ages.length < AT_MOST) return true
    this.#queue.add(asking)
    this.#recheck()
    return false
  }

  /** Lanes that get no answer free nothing by an end: after a while they no longer count. */
  #recheck(): void {
    if (this.#willRecheck) return
    this.#willRecheck = true
    this.#deps.clock.after(this.#deps.times.lateMs, () => {
      this.#willRecheck = false
      this.#next()
    })
  }

  /** Runs after an operation of an account: another lane may have its turn. */
  #handed(account: string): void {
    this.#forgetIfDone(account)
    this.#deps.onConcluded()
    this.#next()
  }

  /** Forgets an account that has nothing left. */
  #forgetIfDone(account: string): void {
    const held = this.#locked.get(account)
    if (!held || held.lane.size > 0 || held.lane.waiting.setAside > 0) return
    this.#locked.delete(account)
    if (!held.isLogged) return
    const forMs = Math.round(this.#deps.clock.now() - held.since)
    this.#deps.logger.warn({ account, forMs }, 'the charges of an account are written again')
  }

  #next(): void {
    for (const lane of this.#queue) {
      this.#queue.delete(lane)
      lane.handSoon()
      break
    }
    if (this.#queue.size > 0) this.#recheck()
  }

  /** A lock of a moment is no news. */
  #log(account: string, error: unknown): void {
    const held = this.#locked.get(account)
    if (!held || held.isLogged || this.#deps.clock.now() - held.since < this.#deps.times.stallMs) return
    held.isLogged = true
    const { size } = held.lane
    this.#deps.logger.error(
      { err: error, account, charges: size },
      'the charges of an account wait: its rows are locked',
    )
  }
}
