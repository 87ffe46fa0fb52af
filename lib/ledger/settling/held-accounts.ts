import type { Logger } from '../../core/call/index.ts'
import { WalletsHeldUp } from '../held-up.ts'
import type { Charge } from './charge.ts'
import { SettlementLane, type SettlementLaneDeps } from './settlement-lane.ts'

/** The parts that {@link HeldAccounts} works with. */
export interface HeldAccountsDeps
  extends Pick<SettlementLaneDeps, 'ledger' | 'clock' | 'progress' | 'onResult'> {
  readonly logger: Logger
  /** How long the oldest charge of an account may wait, in milliseconds. */
  readonly stallMs: number
  /** Runs when a charge is no longer waited for. */
  readonly onConcluded: () => void
}

/** Lanes that use the ledger at the same time: each may wait for a lock there, on a connection. */
const AT_ONCE = 2

interface HeldAccount {
  readonly lane: SettlementLane
  readonly since: number
  isLogged: boolean
}

/** The accounts whose charges cannot be written while others are, each with a lane of its own. */
export class HeldAccounts {
  readonly #deps: HeldAccountsDeps
  readonly #held = new Map<string, HeldAccount>()
  /** Lanes whose turn it is not yet. */
  readonly #line = new Set<SettlementLane>()

  constructor(deps: HeldAccountsDeps) {
    this.#deps = deps
  }

  /** The number of accounts. */
  get accounts(): number {
    return this.#held.size
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    let size = 0
    for (const { lane } of this.#held.values()) size += lane.size
    return size
  }

  get setAsideCount(): number {
    let count = 0
    for (const { lane } of this.#held.values()) count += lane.waiting.setAside
    return count
  }

  laneOf(account: string): SettlementLane | undefined {
    return this.#held.get(account)?.lane
  }

  /** Whether the charge of a new call can be expected to be settled. */
  admits(account: string): boolean {
    const oldest = this.laneOf(account)?.oldest
    return oldest === undefined || this.#deps.clock.now() - oldest < this.#deps.stallMs
  }

  /** Takes charges of an account that may be written. */
  take(account: string, charges: readonly Charge[]): void {
    const { lane } = this.#of(account)
    lane.waiting.putBack(charges)
    lane.handSoon()
  }

  /** Takes charges of an account whose rows are locked. */
  holdUp(account: string, charges: readonly Charge[], error: unknown): void {
    const { lane } = this.#of(account)
    lane.waiting.lastError = error
    lane.waiting.holdBack(charges, this.#deps.clock.now())
    lane.handSoon()
  }

  /** Takes a charge that failed alone while others were written, and tells it. */
  setAside(charge: Charge, error: unknown): void {
    const { lane } = this.#of(charge.account)
    if (charge.setAside()) {
      charge.failures = 0
      lane.waiting.putFirst(charge)
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

  remove(charge: Charge): boolean {
    return this.laneOf(charge.account)?.waiting.remove(charge) ?? false
  }

  retryAside(): void {
    for (const { lane } of this.#held.values()) {
      lane.waiting.readmit(this.#deps.clock.now())
      lane.hand()
    }
  }

  *all(): Iterable<Charge> {
    for (const { lane } of this.#held.values()) {
      yield* lane.flying
      yield* lane.waiting.all()
    }
  }

  #of(account: string): HeldAccount {
    const known = this.#held.get(account)
    if (known) return known
    const { ledger, clock, progress, onResult } = this.#deps
    const lane: SettlementLane = new SettlementLane({
      ledger,
      clock,
      progress,
      onResult,
      mayHand: (asking) => this.#mayHand(asking),
      onHanded: () => this.#handed(account),
      onFailed: (batch, error) => {
        if (!(error instanceof WalletsHeldUp)) return undefined
        lane.waiting.holdBack(batch, clock.now())
        this.#tell(account, error)
        return []
      },
      onAtFault: (charge, error) => this.setAside(charge, error),
    })
    const held = { lane, since: clock.now(), isLogged: false }
    this.#held.set(account, held)
    return held
  }

  #mayHand(asking: SettlementLane): boolean {
    let busy = 0
    for (const { lane } of this.#held.values()) if (lane.flying.length > 0) busy++
    if (busy < AT_ONCE) return true
    this.#line.add(asking)
    return false
  }

  /** Forgets an account that has nothing left, and lets another lane have its turn. */
  #handed(account: string): void {
    const held = this.#held.get(account)
    if (held && held.lane.size === 0 && held.lane.waiting.setAside === 0) {
      this.#held.delete(account)
      if (held.isLogged) {
        const forMs = Math.round(this.#deps.clock.now() - held.since)
        this.#deps.logger.warn({ account, forMs }, 'the charges of an account are written again')
      }
    }
    this.#deps.onConcluded()
    for (const lane of this.#line) {
      this.#line.delete(lane)
      lane.handSoon()
      break
    }
  }

  /** A lock of a moment is no news. */
  #tell(account: string, error: unknown): void {
    const held = this.#held.get(account)
    if (!held || held.isLogged || this.#deps.clock.now() - held.since < this.#deps.stallMs) return
    held.isLogged = true
    const { size } = held.lane
    this.#deps.logger.error(
      { err: error, account, charges: size },
      'the charges of an account wait: its rows are locked',
    )
  }
}
