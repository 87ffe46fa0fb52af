import { ExpiringMap } from './expiring-map.ts'
import { type Count, type Demand, type Limit, SLOT_WAIT_MS, type Verdict } from './limit-store.ts'

/** A window of which nothing is left. */
interface Spent {
  readonly used: number
  /** In milliseconds since the epoch. */
  readonly endsAt: number
}

/** A window that ends so soon may have ended in its store already. */
const ENDING_MS = 20

/** The windows that this process knows to be spent, by whatever store counts them. */
export class SpentWindows {
  readonly #byKey = new ExpiringMap<Spent>(({ endsAt }) => endsAt)

  /** Notes what a verdict tells. */
  note({ charges }: Demand, { counts }: Verdict): void {
    for (let i = 0; i < charges.length; i++) {
      const { key, max } = charges[i] as Limit
      const { used, resetMs } = counts[i] as Count
      if (!(used >= max)) continue
      const now = Date.now()
      this.#byKey.set(key, { used, endsAt: now + resetMs }, now)
    }
  }

  /** Returns the verdict on a demand that a spent window refuses, however small it is; undefined if none does. */
  verdictOn({ charges, windowMs }: Demand): (Verdict & { readonly refusedBy: Limit }) | undefined {
    const now = Date.now()
    let refusedBy: Limit | undefined
    let waitMs = 0
    const counts = charges.map((limit): Count => {
      const spent = this.#byKey.get(limit.key)
      const resetMs = (spent?.endsAt ?? 0) - now
      // A window that seems longer than it can be was noted before the clock was set back.
      if (!spent || resetMs <= ENDING_MS || resetMs > windowMs) return { used: 0, resetMs: windowMs }
      // The limit may have been raised since.
      if (spent.used >= limit.max && resetMs > waitMs) {
        refusedBy = limit
        waitMs = resetMs
      }
      return { used: spent.used, resetMs }
    })
    return refusedBy && { refusedBy, waitMs, counts }
  }
}

/** Returns the verdict of slots that are all taken by calls of this process, which says nothing about windows. */
export function slotVerdict({ charges, windowMs }: Demand, full: Limit | undefined): Verdict | undefined {
  const counts = charges.map(() => ({ used: 0, resetMs: windowMs }))
  return full && { refusedBy: full, waitMs: SLOT_WAIT_MS, counts }
}
