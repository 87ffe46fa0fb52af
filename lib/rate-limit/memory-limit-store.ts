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

/** Limits of one process, in its memory. Answers at once. */
export class MemoryLimitStore implements LimitStore {
  readonly #counters = new MemoryCounters()
  readonly #waits = new Waits()
  readonly #slots = new Map<string, Set<string>>()

  admit(demand: Demand): Verdict {
    const { charges, windowMs } = demand
    const counts = charges.map(({ key }) => this.#counters.read(key, windowMs))
    const refused = this.#refusal(demand, counts)
    if (refused) return { ...refused, counts }
    this.hold(demand)
    return {
      refusedBy: undefined,
      waitMs: this.#waits.admitted(demand.sender),
      counts: charges.map((charge) => this.#counters.charge(charge, windowMs)),
    }
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
  ): { refusedBy: Limit; waitMs: number } | undefined {
    const [first] = charges
    const now = Date.now()
    if (first) {
      const owed = this.#waits.owed(sender, now)
      if (owed) return { refusedBy: charges.find(({ key }) => key === owed.by) ?? first, waitMs: owed.waitMs }
      const longest = longestRefusal(charges, counts)
      if (longest) {
        const { refusedBy, waitMs } = longest
        return { refusedBy, waitMs: this.#waits.refused(sender, refusedBy.key, waitMs, now) }
      }
    }
    const full = slots.find(({ key, most }) => {
      const held = this.#slots.get(key)
      return held !== undefined && held.size >= most && !held.has(id)
    })
    if (!full) return undefined
    if (first) this.#waits.slotRefused(sender, now)
    return { refusedBy: full, waitMs: SLOT_WAIT_MS }
  }
}

/** Waiting for the shortest of several refusals would only lead to the next. */
function longestRefusal(charges: readonly Limit[], counts: readonly Count[]) {
  let longest: { refusedBy: Limit; waitMs: number } | undefined
  charges.forEach((charge, i) => {
    const { used, resetMs } = counts[i] as Count
    if (used + charge.cost <= charge.most) return
    if (!longest || resetMs > longest.waitMs) longest = { refusedBy: charge, waitMs: resetMs }
  })
  return longest
}
