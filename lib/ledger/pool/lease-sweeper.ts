import type { Logger } from '../../core/call/index.ts'
import type { Ledger, OpenLease } from '../ledger.ts'
import type { Clock } from './clock.ts'
import type { LedgerHealth } from './ledger-health.ts'

/** The parts that {@link LeaseSweeper} works with. */
export interface LeaseSweeperDeps {
  readonly ledger: Pick<Ledger, 'leases' | 'sweep'>
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
const AT_ONCE = 16
/** How long one round may sweep, so that the next poll is not delayed. */
const AT_A_STRETCH_MS = 1000

/**
 * Returns leases that nobody renews: those of processes that died, and those that this process gave up. It sweeps a
 * lease only after it has seen no renewal for thirty seconds without an interruption, so that after an outage all
 * processes renew before any of them sweeps.
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
      await this.#sweep(await this.#poll())
      this.#failures = 0
    } catch (error) {
      this.#watched.clear()
      const { health, logger } = this.#deps
      if (++this.#failures === 2 && !health.away) logger.warn({ err: error }, 'leases cannot be watched')
    }
    this.#pollIn(POLL_MS)
  }

  /** Returns the leases that have not been renewed for long enough. */
  async #poll(): Promise<OpenLease[]> {
    const { ledger, clock, kept } = this.#deps
    const askedAt = clock.now()
    if (askedAt - this.#seenAt > GAP_MS) this.#watched.clear()
    const open = await ledger.leases()
    const now = clock.now()
    if (now - askedAt > GAP_MS) this.#watched.clear()
    this.#seenAt = now
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

  async #sweep(leases: readonly OpenLease[]): Promise<void> {
    const { ledger, clock, logger } = this.#deps
    const until = clock.now() + AT_A_STRETCH_MS
    for (let at = 0; at < leases.length && clock.now() < until && !this.#closed; at += AT_ONCE) {
      const batch = leases.slice(at, at + AT_ONCE)
      const swept = await Promise.all(batch.map(({ id, beats }) => ledger.sweep(id, beats)))
      for (const [i, { id, wallet, owner }] of batch.entries()) {
        this.#watched.delete(id)
        if (!swept[i]) continue
        this.#swept++
        logger.warn({ lease: id, wallet, owner }, 'a lease that nobody renewed was returned')
      }
    }
  }
}
