import type { Charge } from './charge.ts'
import { earliest } from './deadlines.ts'

const AT_ONCE = 500
const RETRY_MS = [50, 100, 200, 400, 500] as const
const SET_ASIDE_RETRY_MS = 30_000
/** One that failed alone that often, while others were settled, is at fault itself. */
const FAILURES_ALONE = 3

/**
 * Charges and voids that wait for the ledger, and which of them go next. Where one fails, the ledger may be away, or it
 * may be one that the ledger can never take: it is tried again alone, and set aside where it fails while others do not.
 */
export class WaitingCharges {
  /** What the ledger failed with last. */
  lastError: unknown
  /** Nothing is handed over before. Milliseconds of the clock. */
  resumeAt = Number.NEGATIVE_INFINITY
  #line: Charge[] = []
  /** Failed alone, and are tried again alone. */
  #suspects: Charge[] = []
  readonly #setAside = new Set<Charge>()
  #suspectsTurn = false
  /** Fewer after a failure, so that one that fails is soon alone. */
  #atOnce = AT_ONCE
  #settled = 0
  #failuresInARow = 0

  /** How many wait; those set aside do not count. */
  get size(): number {
    return this.#line.length + this.#suspects.length
  }

  /** How many are set aside. */
  get setAside(): number {
    return this.#setAside.size
  }

  /** Since when the oldest waits. */
  get oldest(): number | undefined {
    const first = this.#line[0]?.since
    return this.#suspects.reduce<number | undefined>((oldest, { since }) => earliest(oldest, since), first)
  }

  /** Whether those that wait may be at fault themselves, all of them, and those that are being handed over. */
  areSuspect(flying: readonly Charge[]): boolean {
    const isSuspect = ({ failures }: Charge) => failures >= FAILURES_ALONE
    return this.#line.length === 0 && this.#suspects.every(isSuspect) && flying.every(isSuspect)
  }

  add(charge: Charge): void {
    this.#line.push(charge)
  }

  /** Takes out what was never handed; answers whether it was there. */
  remove(charge: Charge): boolean {
    const at = this.#line.indexOf(charge)
    if (at < 0) return false
    this.#line.splice(at, 1)
    return true
  }

  /** Takes those that go next; none where none is due yet. */
  take(now: number): readonly Charge[] {
    const suspect = this.#suspects[0]
    // In turn with the others: whether they are settled shows which of them is at fault.
    this.#suspectsTurn = !this.#suspectsTurn || this.#line.length === 0
    if (this.#suspectsTurn && suspect && suspect.retryAt <= now) return this.#suspects.splice(0, 1)
    if (this.#line.length > 0) {
      if (this.#line.length > this.#atOnce) return this.#line.splice(0, this.#atOnce)
      const all = this.#line
      this.#line = []
      return all
    }
    for (const charge of this.#setAside) {
      if (charge.retryAt > now) continue
      this.#setAside.delete(charge)
      return [charge]
    }
    return []
  }

  /** When the next is due, where none is now. */
  get dueAt(): number | undefined {
    if (this.#suspects[0]) return this.#suspects[0].retryAt
    const due = Array.from(this.#setAside, ({ retryAt }) => retryAt)
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** So many were settled: more at once the next time. */
  settled(many: number): void {
    this.#failuresInARow = 0
    this.#settled += many
    if (this.#atOnce < AT_ONCE) this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 8)
  }

  /** They failed together: they go next, fewer at once. Soon each is alone; until then nobody knows which is at fault. */
  failedTogether(batch: readonly Charge[]): void {
    this.#atOnce = Math.max(1, Math.ceil(batch.length / 8))
    this.#line = [...batch, ...this.#line]
  }

  /**
   * One failed alone. It is at fault itself where it does so again and again while others are settled; else it is tried
   * again alone, after a while in which nothing is handed over.
   *
   * @returns whether it is at fault.
   */
  failedAlone(charge: Charge, now: number): boolean {
    if (charge.failures++ === 0) charge.settledBefore = this.#settled
    if (charge.failures >= FAILURES_ALONE && this.#settled > charge.settledBefore) return true
    this.resumeAt = now + backoffMs(++this.#failuresInARow)
    this.#atOnce = 1
    charge.retryAt = now + backoffMs(charge.failures)
    this.#suspects.push(charge)
    return false
  }

  /** It goes first. */
  putFirst(charge: Charge): void {
    this.#line.unshift(charge)
  }

  /** It is at fault itself, and is tried again rarely. */
  keepAside(charge: Charge, now: number): void {
    charge.retryAt = now + SET_ASIDE_RETRY_MS
    this.#setAside.add(charge)
  }

  /** Those set aside are tried again at once, each alone, as if they had come now. */
  readmit(now: number): void {
    for (const charge of this.#setAside) {
      charge.since = now
      charge.retryAt = now
      this.#suspects.push(charge)
    }
    this.#setAside.clear()
  }

  *all(): Iterable<Charge> {
    yield* this.#suspects
    yield* this.#line
    yield* this.#setAside
  }
}

function backoffMs(failures: number): number {
  return RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? 0
}
