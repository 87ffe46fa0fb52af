import {
  type Count,
  type Demand,
  type Limit,
  type LimitStore,
  SLOT_WAIT_MS,
  type Verdict,
} from './limit-store.ts'
import { MemoryCounters } from './memory-counters.ts'
import { Waits } from './waits.ts'

/**
 * Limits of one process, in its memory. Answers at once.
 *
 * @example
 * app.use(rateLimit({ store: new MemoryLimitStore(), levels: [{ name: 'ip', by: (req) => req.ip, rpm: 60 }] }))
 */
export class MemoryLimitStore implements LimitStore {
  readonly #counters = new MemoryCounters()
  readonly #waits = new Waits()
  readonly #slots = new Map<string, Set<string>>()

  admit(demand: Demand): Verdict {
    const { charges, windowMs } = demand
    const now = Date.now()
    const counts: Count[] = []
    for (const { key } of charges) counts.push(this.#counters.read(key, windowMs, now))
    const refused = this.#refusal(demand, counts, now)
    if (refused) return { refusedBy: refused.refusedBy, waitMs: refused.waitMs, counts }
    this.hold(demand)
    for (let i = 0; i < charges.length; i++) {
      const charge = charges[i] as Limit
      this.#counters.charge(charge, windowMs, now)
      ;(counts[i] as { used: number }).used += charge.cost
    }
    return { refusedBy: undefined, waitMs: this.#waits.admitted(demand.sender), counts }
  }

  hold({ id, slots }: Demand): void {
    for (const { key } of slots) {
      const held = this.#slots.get(key)
      if (held) held.add(id)
      else this.#slots.set(key, new Set([id]))
    }
  }

  release({ id, slots }: Demand): void {
    for (const { key } of slots) {
      const held = this.#slots.get(key)
      if (held?.delete(id) && held.size === 0) this.#slots.delete(key)
    }
  }

  ended(sender: string): void {
    this.#waits.ended(sender, Date.now())
  }

  #refusal(
    { id, sender, charges, slots }: Demand,
    counts: readonly Count[],
    now: number,
  ): { refusedBy: Limit; waitMs: number } | undefined {
    const [first] = charges
    if (first) {
      const owed = this.#waits.owed(sender, now)
      if (owed) return { refusedBy: charges.find(({ key }) => key === owed.by) ?? first, waitMs: owed.waitMs }
      const longest = longestRefusal(charges, counts)
      if (longest >= 0) {
        const refusedBy = charges[longest] as Limit
        const { resetMs } = counts[longest] as Count
        return { refusedBy, waitMs: this.#waits.refused(sender, refusedBy.key, resetMs, now) }
      }
    }
    for (const slot of slots) {
      const held = this.#slots.get(slot.key)
      if (held === undefined || held.size < slot.most || held.has(id)) continue
      if (first) this.#waits.slotRefused(sender, now)
      return { refusedBy: slot, waitMs: SLOT_WAIT_MS }
    }
    return undefined
  }
}

/** The place of the charge; waiting for the shortest of several refusals would only lead to the next. -1: none refuses. */
function longestRefusal(charges: readonly Limit[], counts: readonly Count[]): number {
  let longest = -1
  let waitMs = 0
  for (let i = 0; i < charges.length; i++) {
    const { cost, most } = charges[i] as Limit
    const { used, resetMs } = counts[i] as Count
    if (used + cost <= most || (longest >= 0 && resetMs <= waitMs)) continue
    longest = i
    waitMs = resetMs
  }
  return longest
}
