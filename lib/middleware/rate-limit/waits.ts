import { ExpiringMap } from './expiring-map.ts'
import { GRACE_MS, MOST_WAIT_MS, PARDON_MS, PROLONG_MS, SLOT_WAIT_MS } from './limit-store.ts'

interface Wait {
  /** When the refusal came that began it. */
  readonly since: number
  /** The time that was told first. Whoever comes from then on may have waited: that is no offence. */
  readonly told: number
  /** When its time is up. */
  readonly until: number
  /** The key of the limit that refused. */
  readonly by: string
  /** Whether the sender came back before the time was up; from then on the wait itself refuses. */
  readonly prolonged: boolean
  /** Calls that ended during the wait and whose caller has not sent its next request yet, which is no offence. */
  readonly pardons: number
}

/** The waits that senders were told, and what becomes of them when one does not wait (spec 8.2). */
export class Waits {
  readonly #bySender = new ExpiringMap<Wait>(({ until }) => until)
  /** When senders that were last refused a slot were told to come back: that may be within a wait begun meanwhile. */
  readonly #slotDue = new ExpiringMap<number>((due) => due + GRACE_MS)

  /** The wait that a sender still has to serve whatever its limits say; asking for it early is one more offence. */
  owed(sender: string, now: number): { waitMs: number; by: string } | undefined {
    const wait = this.#running(sender, now)
    if (!wait?.prolonged) return undefined
    let { until } = wait
    if (this.#isEarly(sender, wait, now)) until = Math.min(until + PROLONG_MS, now + MOST_WAIT_MS)
    this.#bySender.set(sender, { ...usePardon(wait), until }, now)
    return { waitMs: until - now, by: wait.by }
  }

  /** Notes a refusal. Returns the wait to tell, in milliseconds. */
  refused(sender: string, by: string, waitMs: number, now: number): number {
    const wait = this.#running(sender, now)
    const due = now + waitMs
    if (wait === undefined || now >= wait.told) {
      this.#bySender.set(sender, { since: now, told: due, until: due, by, prolonged: false, pardons: 0 }, now)
      return waitMs
    }
    const prolonged = this.#isEarly(sender, wait, now)
    const until = prolonged ? Math.min(Math.max(due, wait.until) + PROLONG_MS, now + MOST_WAIT_MS) : due
    const told = Math.min(wait.told, due)
    this.#bySender.set(sender, { ...usePardon(wait), told, until, by, prolonged }, now)
    return until - now
  }

  /** Notes that a sender was told to come back for a slot. */
  slotRefused(sender: string, now: number): void {
    this.#slotDue.set(sender, now + SLOT_WAIT_MS, now)
  }

  /**
   * A caller whose call ended during the wait may have come back, and was not refused this time either.
   *
   * @returns the rest of the wait as it was told first, in milliseconds.
   */
  admitted(sender: string, now: number): number {
    const wait = this.#running(sender, now)
    if (!wait) return 0
    if (wait.pardons > 0) this.#bySender.set(sender, usePardon(wait), now)
    return Math.max(0, wait.told - now)
  }

  /** A call ended; if that was during a wait, whoever made it has not been told of it. */
  ended(sender: string, now: number): void {
    const wait = this.#running(sender, now)
    if (wait && now >= wait.since + PARDON_MS && now < wait.told)
      this.#bySender.set(sender, { ...wait, pardons: wait.pardons + 1 }, now)
  }

  /** None is longer than that: one that seems to be was noted before the clock was set back. */
  #running(sender: string, now: number): Wait | undefined {
    const wait = this.#bySender.get(sender)
    return wait && now < wait.until && wait.until - now <= MOST_WAIT_MS ? wait : undefined
  }

  #isEarly(sender: string, { since, told, pardons }: Wait, now: number): boolean {
    const due = this.#slotDue.get(sender)
    const calm = due !== undefined && due <= now + SLOT_WAIT_MS ? Math.max(since, due) : since
    return pardons === 0 && now > calm + GRACE_MS && now < told
  }
}

function usePardon(wait: Wait): Wait {
  return wait.pardons > 0 ? { ...wait, pardons: wait.pardons - 1 } : wait
}
