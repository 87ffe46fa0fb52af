import { GRACE_MS, MOST_WAIT_MS, PROLONG_MS } from './limit-store.ts'

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
}

/** The waits that senders were told, and what becomes of them when one does not wait (spec 8.2). */
export class Waits {
  readonly #bySender = new Map<string, Wait>()
  #sweepAt = 1024

  /** The wait that a sender still has to serve whatever its limits say; asking for it early is one more offence. */
  owed(sender: string, now: number): { waitMs: number; by: string } | undefined {
    const wait = this.#running(sender, now)
    if (!wait?.prolonged) return undefined
    let { until } = wait
    if (isEarly(wait, now)) {
      until = Math.min(until + PROLONG_MS, now + MOST_WAIT_MS)
      this.#bySender.set(sender, { ...wait, until })
    }
    return { waitMs: until - now, by: wait.by }
  }

  /** Notes a refusal. Returns the wait to tell, in milliseconds. */
  refused(sender: string, by: string, waitMs: number, now: number): number {
    const wait = this.#running(sender, now)
    const due = now + waitMs
    this.#sweep(now)
    if (wait === undefined || now >= wait.told) {
      this.#bySender.set(sender, { since: now, told: due, until: due, by, prolonged: false })
      return waitMs
    }
    const prolonged = isEarly(wait, now)
    const until = prolonged ? Math.min(Math.max(due, wait.until) + PROLONG_MS, now + MOST_WAIT_MS) : due
    this.#bySender.set(sender, { ...wait, told: Math.min(wait.told, due), until, by, prolonged })
    return until - now
  }

  /** None is longer than that: one that seems to be was noted before the clock was set back. */
  #running(sender: string, now: number): Wait | undefined {
    const wait = this.#bySender.get(sender)
    return wait && now < wait.until && wait.until - now <= MOST_WAIT_MS ? wait : undefined
  }

  /** Forgets waits that are over, whenever their number has doubled. */
  #sweep(now: number): void {
    if (this.#bySender.size < this.#sweepAt) return
    for (const [sender, wait] of this.#bySender) if (wait.until <= now) this.#bySender.delete(sender)
    this.#sweepAt = Math.max(1024, this.#bySender.size * 2)
  }
}

function isEarly({ since, told }: Wait, now: number): boolean {
  return now > since + GRACE_MS && now < told
}
