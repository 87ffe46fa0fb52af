import { ExpiringMap } from './expiring-map.ts'
import {
  type Demand,
  GRACE_MS,
  type Limit,
  MAX_WAIT_MS,
  MAX_WINDOW_MS,
  PARDON_MS,
  PENALTY_MS,
  SLOT_WAIT_MS,
} from './limit-store.ts'

/** The wait of a sender that was refused. Times are milliseconds since the epoch. */
interface Cooldown {
  /** When the first refusal came. */
  readonly startedAt: number
  /** The end that was announced first. A request from then on is no early retry: its caller may have waited. */
  readonly announcedEnd: number
  /** The end with all penalties. */
  readonly endsAt: number
  /** The key of the limit that refused, and how high it was. */
  readonly limitKey: string
  readonly limitMax: number
  /** Whether the sender retried early. From then on the cooldown itself refuses, whatever the limits say. */
  readonly isPenalized: boolean
  /** How many early retries are excused, because calls ended whose callers could not know of the refusal. */
  readonly pardons: number
}

/** Keeps the cooldowns of refused senders, and prolongs those of senders that retry early. */
export class Cooldowns {
  readonly #bySender = new ExpiringMap<Cooldown>(
    ({ endsAt }) => endsAt,
    ({ isPenalized }) => (isPenalized ? 1 : 0),
  )
  /** When senders that were last refused a slot may retry, which may be during a later cooldown. */
  readonly #slotRetryAt = new ExpiringMap<number>((retryAt) => retryAt + GRACE_MS)

  /**
   * Returns what a penalized sender still waits for, if that is among its limits. The current request counts as another
   * early retry.
   */
  owed(
    sender: string,
    { charges: limits, windowMs }: Demand,
    now: number,
  ): { refusedBy: Limit; waitMs: number } | undefined {
    const cooldown = this.running(sender, now, windowMs)
    if (!cooldown?.isPenalized) return undefined
    const refusedBy = limitOf(cooldown, limits)
    if (!refusedBy) return undefined
    let { endsAt } = cooldown
    if (this.#isEarlyRetry(sender, cooldown, now)) endsAt = prolonged(endsAt, now)
    this.#bySender.set(sender, { ...usePardon(cooldown), endsAt }, now)
    return { refusedBy, waitMs: endsAt - now }
  }

  /** Notes that one of its limits refused a sender for `waitMs`. Returns the wait to announce, in milliseconds. */
  refused(
    sender: string,
    { key: limitKey, max: limitMax }: Limit,
    { charges: limits, windowMs }: Demand,
    waitMs: number,
    now: number,
  ): number {
    const cooldown = this.running(sender, now, windowMs)
    const limitEnd = now + waitMs
    if (cooldown === undefined || now >= cooldown.announcedEnd || !limitOf(cooldown, limits)) {
      const begun = { startedAt: now, announcedEnd: limitEnd, endsAt: limitEnd }
      this.#bySender.set(sender, { ...begun, limitKey, limitMax, isPenalized: false, pardons: 0 }, now)
      return waitMs
    }
    const latestEnd = Math.max(limitEnd, cooldown.endsAt)
    const prolongedEnd = prolonged(latestEnd, now)
    const isPenalized = prolongedEnd > latestEnd && this.#isEarlyRetry(sender, cooldown, now)
    const endsAt = isPenalized ? prolongedEnd : limitEnd
    const announcedEnd = Math.min(cooldown.announcedEnd, limitEnd)
    const latest = { announcedEnd, endsAt, limitKey, limitMax, isPenalized }
    this.#bySender.set(sender, { ...usePardon(cooldown), ...latest }, now)
    return endsAt - now
  }

  /** Notes that a sender was refused a slot and told to retry after {@link SLOT_WAIT_MS}. */
  slotRefused(sender: string, now: number): void {
    this.#slotRetryAt.set(sender, now + SLOT_WAIT_MS, now)
  }

  /**
   * Notes an admitted request, which uses up a pardon: it may come from the caller whose call ended.
   *
   * @returns what is left of the sender's cooldown as it was announced first, in milliseconds; 0 without one.
   */
  admitted(sender: string, { charges: limits, windowMs }: Demand, now: number): number {
    const cooldown = this.running(sender, now, windowMs)
    if (!cooldown || !limitOf(cooldown, limits)) return 0
    if (cooldown.pardons > 0) this.#bySender.set(sender, usePardon(cooldown), now)
    return Math.max(0, cooldown.announcedEnd - now)
  }

  /** Notes the end of a call. During a cooldown this gives a pardon: its caller did not know of the refusal. */
  ended(sender: string, now: number): void {
    const cooldown = this.running(sender, now, MAX_WINDOW_MS)
    if (cooldown && now >= cooldown.startedAt + PARDON_MS && now < cooldown.announcedEnd)
      this.#bySender.set(sender, { ...cooldown, pardons: cooldown.pardons + 1 }, now)
  }

  /** Returns the sender's cooldown. One that seems longer than any may be is from before the clock was set back. */
  running(sender: string, now: number, windowMs: number): Cooldown | undefined {
    const cooldown = this.#bySender.get(sender)
    if (!cooldown || now >= cooldown.endsAt) return undefined
    return cooldown.endsAt - now <= Math.max(MAX_WAIT_MS, windowMs) ? cooldown : undefined
  }

  #isEarlyRetry(sender: string, { startedAt, announcedEnd, pardons }: Cooldown, now: number): boolean {
    const slotRetryAt = this.#slotRetryAt.get(sender)
    const allowedAt =
      slotRetryAt !== undefined && slotRetryAt <= now + SLOT_WAIT_MS
        ? Math.max(startedAt, slotRetryAt)
        : startedAt
    return pardons === 0 && now > allowedAt + GRACE_MS && now < announcedEnd
  }
}

/** Returns the limit that a sender waits for, if it is among these and was not raised since. */
function limitOf({ limitKey, limitMax }: Cooldown, limits: readonly Limit[]): Limit | undefined {
  return limits.find(({ key, max }) => key === limitKey && max <= limitMax)
}

/** Returns the end of a wait after an early retry. No penalty reaches further than {@link MAX_WAIT_MS}, and none shortens. */
function prolonged(endsAt: number, now: number): number {
  return Math.max(endsAt, Math.min(endsAt + PENALTY_MS, now + MAX_WAIT_MS))
}

function usePardon(cooldown: Cooldown): Cooldown {
  return cooldown.pardons > 0 ? { ...cooldown, pardons: cooldown.pardons - 1 } : cooldown
}
