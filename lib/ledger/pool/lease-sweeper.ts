import type { Logger } from '../../core/call/index.ts'
import type { OpenLease } from '../ledger.ts'
import { WalletsLocked } from '../wallets-locked.ts'
import type { Clock } from './clock.ts'
import type { LedgerHealth } from './ledger-health.ts'
import type { TimelyLedger } from './timely-ledger.ts'

/** The parts that {@link LeaseSweeper} works with. */
export interface LeaseSweeperDeps {
  readonly ledger: Pick<TimelyLedger, 'watch' | 'sweep'>
  /** The name of this process. */
  readonly owner: string
  readonly clock: Clock
  readonly logger: Logger
  readonly health: LedgerHealth
  /** Returns the leases that this process renews. */
  readonly kept: () => ReadonlySet<string>
}

const POLL_MS = 3000
/** A longer time between two polls counts as an interruption. */
const GAP_MS = 5000
const UNRENEWED_MS = 30_000
/** Swept together: a ledger may do so in one transaction, which must stay short. */
const AT_ONCE = 250
/** How long one round may sweep: then it looks again whether a lease is renewed after all. */
const AT_A_STRETCH_MS = 1000
/** How soon it does that while there is more to sweep. */
const MORE_MS = 100

/**
 * Returns leases that no process renews: those of processes that died, and those that this process gave up. It sweeps a
 * lease only after it has seen no renewal for thirty seconds without an interruption, so that after an outage all
 * processes renew before any of them sweeps. While enough other processes look, it only asks whether they still do.
 */
export class LeaseSweeper {
  readonly #deps: LeaseSweeperDeps
  readonly #watched = new Map<string, { beats: number; since: number }>()
  #seenAt = Number.NEGATIVE_INFINITY
  #callOff: (() => void) | undefined
  #failures = 0
  #closed = false
  #swept = 0

  constructor(deps: LeaseSweeperDeps) {
    this.#deps = deps
    this.#pollIn(POLL_MS)
  }

  /** The number of leases swept so far, for metrics. */
  get swept(): number {
    return this.#swept
  }

  close(): void {
    this.#closed = true
    this.#callOff?.()
  }

  #pollIn(ms: number): void {
    if (!this.#closed) this.#callOff = this.#deps.clock.after(ms, () => void this.#round())
  }

  async #round(): Promise<void> {
    try {
      const isDone = await this.#sweep(await this.#poll())
      this.#failures = 0
      this.#pollIn(isDone ? POLL_MS : MORE_MS)
    } catch (error) {
      this.#watched.clear()
      const { health, logger } = this.#deps
      if (++this.#failures === 2 && !health.away) logger.warn({ err: error }, 'leases cannot be watched')
      this.#pollIn(POLL_MS)
    }
  }

  /** Returns the leases that have not been renewed for long enough. */
  async #poll(): Promise<OpenLease[]> {
    const { ledger, owner, clock, kept } = this.#deps
    const askedAt = clock.now()
    if (askedAt - this.#seenAt > GAP_MS) this.#watched.clear()
    const open = await ledger.watch(owner)
    const now = clock.now()
    if (!open || now - askedAt > GAP_MS) this.#watched.clear()
    this.#seenAt = now
    if (!open) return []
    const own = kept()
    const others = open.filter(({ id }) => !own.has(id))
    this.#forgetAllBut(new Set(others.map(({ id }) => id)))
    return others.filter(({ id, beats }) => {
      const watched = this.#watched.get(id)
      if (watched?.beats === beats) return askedAt - watched.since >= UNRENEWED_MS
      this.#watched.set(id, { beats, since: now })
      return false
    })
  }

  #forgetAllBut(open: ReadonlySet<string>): void {
    for (const id of this.#watched.keys()) if (!open.has(id)) this.#watched.delete(id)
  }

  /**
   * @returns whether all were tried.
   * @throws the failure, if all of some failed. A ledger that says whose rows are locked answers: only these leases wait.
   */
  async #sweep(leases: readonly OpenLease[]): Promise<boolean> {
    const { ledger, clock, logger } = this.#deps
    const until = clock.now() + AT_A_STRETCH_MS
    for (let at = 0; at < leases.length && !this.#closed; at += AT_ONCE) {
      if (clock.now() >= until) return false
      const batch = leases.slice(at, at + AT_ONCE)
      const swept = await Promise.allSettled(batch.map(({ id, beats }) => ledger.sweep(id, beats)))
      const failures = swept.filter((one) => one.status === 'rejected')
      const isAway = failures.length === batch.length && !failures.some(isLocked)
      if (failures[0] && isAway) throw failures[0].reason
      for (const [i, { id, wallet, owner }] of batch.entries()) {
        const one = swept[i]
        // One that failed is tried again with the next look.
        if (one?.status !== 'fulfilled') continue
        this.#watched.delete(id)
        if (!one.value) continue
        this.#swept++
        logger.warn({ lease: id, wallet, owner }, 'a lease that nobody renewed was returned')
      }
    }
    return true
  }
}

function isLocked({ reason }: PromiseRejectedResult): boolean {
  return reason instanceof WalletsLocked
}
