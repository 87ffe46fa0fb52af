import { Cooldowns } from './cooldowns.ts'
import { ExpiringMap } from './expiring-map.ts'
import {
  type Count,
  type Demand,
  type Limit,
  type LimitStore,
  SLOT_WAIT_MS,
  type Verdict,
} from './limit-store.ts'

/** How many sets of slots are kept even while empty: most of them fill again. */
const MAX_KEPT_SETS = 20_000

/** In every set of slots: V8 allocates a set anew each time it becomes empty. */
const NOBODY = ''

type WritableCount = { -readonly [member in keyof Count]: Count[member] }

/** A verdict that is still being made. */
interface WritableVerdict extends Verdict {
  waitMs: number
  readonly counts: WritableCount[]
}

/** What is used of a window, and when it ends, in milliseconds since the epoch. */
interface Window {
  used: number
  /** The limit when it was last counted on. */
  max: number
  endsAt: number
}

/**
 * Limits of one process, in its memory. Answers at once.
 *
 * The counters are its own: those of rate-limiter-flexible count one key at a time, count what they refuse, and answer by
 * promise, so that several limits cannot be decided on at once. {@link LimiterStore} is for one limit over them.
 *
 * @example
 * app.use(rateLimit({ store: new MemoryLimitStore(), levels: [{ name: 'ip', by: (req) => req.ip, rpm: 60 }] }))
 */
export class MemoryLimitStore implements LimitStore {
  readonly #windows = new ExpiringMap<Window>(
    ({ endsAt }) => endsAt,
    ({ used, max }) => used / max,
  )
  /** Made when somebody is refused for the first time. */
  #cooldowns: Cooldowns | undefined
  readonly #slots = new Map<string, Set<string>>()

  admit(demand: Demand): Verdict {
    const now = Date.now()
    const verdict = this.#judge(demand, now)
    if (verdict.refusedBy) return verdict
    this.hold(demand)
    const { charges, windowMs, sender } = demand
    for (let i = 0; i < charges.length; i++) {
      const { key, cost, max } = charges[i] as Limit
      const count = verdict.counts[i] as WritableCount
      count.used += cost
      const endsAt = now + count.resetMs
      const window = this.#windows.get(key)
      if (window) {
        window.used = window.endsAt > now ? window.used + cost : cost
        window.max = max
        window.endsAt = endsAt
      } else this.#windows.set(key, { used: cost, max, endsAt }, now)
    }
    if (this.#cooldowns && charges.length > 0 && this.#cooldowns.running(sender, now, windowMs))
      verdict.waitMs = this.#cooldowns.admitted(sender, demand, now)
    return verdict
  }

  /** Returns the verdict on a demand that is refused; undefined for one that would be admitted, of which nothing is taken. */
  refuse(demand: Demand): Verdict | undefined {
    const verdict = this.#judge(demand, Date.now())
    return verdict.refusedBy && verdict
  }

  /** Decides on a demand and takes nothing of it. The counts are those before it. */
  #judge(demand: Demand, now: number): WritableVerdict {
    const { charges, windowMs, sender } = demand
    const counts = new Array<WritableCount>(charges.length)
    // Of several limits that refuse, the one with the longest wait: waiting for another would only lead to this one.
    let refusedBy: Limit | undefined
    let waitMs = 0
    for (let i = 0; i < charges.length; i++) {
      const charge = charges[i] as Limit
      const window = this.#windows.get(charge.key)
      const open = window !== undefined && window.endsAt > now
      // A window that seems longer than it can be was opened before the clock was set back.
      if (open && window.endsAt - now > windowMs) window.endsAt = now + windowMs
      const used = open ? window.used : 0
      const resetMs = open ? window.endsAt - now : windowMs
      counts[i] = { used, resetMs }
      if (used + charge.cost <= charge.max || resetMs <= waitMs) continue
      refusedBy = charge
      waitMs = resetMs
    }
    const owed = charges.length > 0 ? this.#cooldowns?.owed(sender, demand, now) : undefined
    if (owed) return { ...owed, counts }
    if (refusedBy) {
      this.#cooldowns ??= new Cooldowns()
      return { refusedBy, waitMs: this.#cooldowns.refused(sender, refusedBy, demand, waitMs, now), counts }
    }
    refusedBy = this.fullSlot(demand)
    if (refusedBy && charges.length > 0) {
      this.#cooldowns ??= new Cooldowns()
      this.#cooldowns.slotRefused(sender, now)
    }
    return { refusedBy, waitMs: refusedBy ? SLOT_WAIT_MS : 0, counts }
  }

  hold({ id, slots }: Demand): void {
    for (let i = 0; i < slots.length; i++) {
      const { key } = slots[i] as Limit
      const held = this.#slots.get(key)
      if (held) held.add(id)
      else this.#slots.set(key, new Set([NOBODY, id]))
    }
  }

  release({ id, slots }: Demand): void {
    for (let i = 0; i < slots.length; i++) {
      const { key } = slots[i] as Limit
      const held = this.#slots.get(key)
      if (held?.delete(id) && held.size === 1 && this.#slots.size > MAX_KEPT_SETS) this.#slots.delete(key)
    }
  }

  ended(sender: string): void {
    this.#cooldowns?.ended(sender, Date.now())
  }

  /** Returns a limit of which all slots are taken; undefined if there is none. */
  fullSlot({ id, slots }: Demand): Limit | undefined {
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] as Limit
      const held = this.#slots.get(slot.key)
      if (held !== undefined && held.size > slot.max && !held.has(id)) return slot
    }
    return undefined
  }
}
