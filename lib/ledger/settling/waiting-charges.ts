import { inTurn } from '../../core/fair-queue/index.ts'
import type { Charge } from './charge.ts'
import { earliest } from './deadlines.ts'

const AT_ONCE = 500
/** As many take hardly longer than one; much larger operations would hold up the charges that come meanwhile. */
const MAX_BYTES_AT_ONCE = 8 * 1024 * 1024
const NONE: ReadonlySet<string> = new Set()
const RETRY_MS = [50, 100, 200, 400, 500] as const
const SET_ASIDE_RETRY_MS = 30_000
/** A charge that failed alone this often, while others were settled, is at fault itself. */
const FAILURES_ALONE = 3

/** How many charges were settled, of all lanes. */
export interface Progress {
  settled: number
}

/**
 * The charges and voids that wait for the ledger; decides which of them go next. If one fails, either the ledger is
 * away or it can never take that charge. So the charge is tried again alone, and set aside if it fails while others are
 * settled. Where not all that wait go together, the accounts take turns.
 */
export class WaitingCharges {
  /** The ledger's last failure. */
  lastError: unknown
  /** Nothing is handed over before this time, in milliseconds of the clock. */
  resumeAt = Number.NEGATIVE_INFINITY
  #queue: Charge[] = []
  /** Charges that failed alone and are tried again alone. */
  #suspects: Charge[] = []
  readonly #setAside = new Set<Charge>()
  #suspectsTurn = false
  /** Fewer after a failure, so that a charge that fails is soon alone. */
  #atOnce = AT_ONCE
  readonly #progress: Progress
  #failuresInARow = 0

  /** @param progress shared with the other lanes. */
  constructor(progress: Progress = { settled: 0 }) {
    this.#progress = progress
  }

  /** The number of waiting charges, without those set aside. */
  get size(): number {
    return this.#queue.length + this.#suspects.length
  }

  get setAside(): number {
    return this.#setAside.size
  }

  /** Since when the oldest has waited. */
  get oldest(): number | undefined {
    const first = this.#queue[0]?.since
    return this.#suspects.reduce<number | undefined>((oldest, { since }) => earliest(oldest, since), first)
  }

  /** Whether nothing has failed since as many as possible went together. */
  get areSound(): boolean {
    return this.#atOnce === AT_ONCE && this.#suspects.length === 0
  }

  /** Whether all waiting charges, and those being handed over, may be at fault themselves. */
  areSuspect(flying: readonly Charge[]): boolean {
    const isSuspect = ({ failures }: Charge) => failures >= FAILURES_ALONE
    return this.#queue.length === 0 && this.#suspects.every(isSuspect) && flying.every(isSuspect)
  }

  add(charge: Charge): void {
    this.#queue.push(charge)
  }

  /** Removes a charge that was never handed over; returns whether it was there. */
  remove(charge: Charge): boolean {
    const at = this.#queue.indexOf(charge)
    if (at < 0) return false
    this.#queue.splice(at, 1)
    return true
  }

  /**
   * Returns the charges that go next; none if none is due.
   *
   * @param without accounts whose charges stay. Defaults to none.
   */
  take(now: number, without: ReadonlySet<string> = NONE): readonly Charge[] {
    if (without.size > 0) return this.#takeOf(this.#queue.filter(({ account }) => !without.has(account)))
    const suspect = this.#suspects[0]
    // Suspects take turns with the others: whether others are settled shows which charge is at fault.
    this.#suspectsTurn = !this.#suspectsTurn || this.#queue.length === 0
    if (this.#suspectsTurn && suspect && suspect.retryAt <= now) return this.#suspects.splice(0, 1)
    if (this.#queue.length > 0) return this.#takeOf(this.#queue)
    for (const charge of this.#setAside) {
      if (charge.retryAt > now) continue
      this.#setAside.delete(charge)
      return [charge]
    }
    return []
  }

  /** Takes as many of some of the line as go together: all, or the first of each account, the second of each, and so on. */
  #takeOf(some: readonly Charge[]): readonly Charge[] {
    const isAll = fitting(some, this.#atOnce) === some.length
    const ordered = isAll ? some : inTurn(some, ({ account }) => account)
    const next = isAll ? some : ordered.slice(0, fitting(ordered, this.#atOnce))
    if (next.length === this.#queue.length) this.#queue = []
    else if (next.length > 0) {
      const taken = new Set(next)
      this.#queue = this.#queue.filter((charge) => !taken.has(charge))
    }
    return next
  }

  /** When the next charge is due, if none is due now. */
  get dueAt(): number | undefined {
    if (this.#suspects[0]) return this.#suspects[0].retryAt
    const due = Array.from(this.#setAside, ({ retryAt }) => retryAt)
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** Records that this many were settled, so that the next operation takes more. */
  settled(many: number): void {
    if (this.#failuresInARow >= FAILURES_ALONE) this.#clearSuspects()
    this.#failuresInARow = 0
    this.#progress.settled += many
    if (this.#atOnce < AT_ONCE) this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 8)
  }

  /** Puts suspects back that failed while nothing was written: the ledger was away, and they need not go one by one. */
  #clearSuspects(): void {
    const { settled } = this.#progress
    const cleared = this.#suspects.filter(({ settledBefore }) => settledBefore === settled)
    this.#suspects = this.#suspects.filter(({ settledBefore }) => settledBefore !== settled)
    // A charge that fails alone once more is at fault.
    for (const charge of cleared) charge.failures = Math.min(charge.failures, FAILURES_ALONE - 1)
    this.putBack(cleared)
  }

  /** Puts charges back into the line that were not at fault. */
  putBack(charges: readonly Charge[]): void {
    if (charges.length === 0) return
    // They may have come behind others that were not taken with them.
    this.#queue = [...charges, ...this.#queue].sort((one, other) => one.since - other.since)
  }

  /** Puts charges back that cannot be written now, and hands nothing over for a while. */
  holdBack(charges: readonly Charge[], now: number): void {
    this.putBack(charges)
    this.resumeAt = now + backoffMs(++this.#failuresInARow)
  }

  /** Takes out the charges of accounts. */
  takeOut(isOf: (charge: Charge) => boolean): Charge[] {
    const out = [...this.#suspects, ...this.#queue].filter(isOf)
    if (out.length === 0) return out
    this.#suspects = this.#suspects.filter((charge) => !isOf(charge))
    this.#queue = this.#queue.filter((charge) => !isOf(charge))
    return out
  }

  /** Records that charges failed together. They go next, fewer at a time, until the one at fault is alone. */
  failedTogether(batch: readonly Charge[]): void {
    this.#atOnce = Math.max(1, Math.ceil(batch.length / 8))
    this.putBack(batch)
  }

  /**
   * Records that a charge failed alone. It is at fault itself if it fails repeatedly while others are settled; else it
   * is tried again alone, after a pause in which nothing is handed over.
   *
   * @returns whether the charge is at fault.
   */
  failedAlone(charge: Charge, now: number): boolean {
    if (charge.failures++ === 0) charge.settledBefore = this.#progress.settled
    if (charge.failures >= FAILURES_ALONE && this.#progress.settled > charge.settledBefore) return true
    this.resumeAt = now + backoffMs(++this.#failuresInARow)
    this.#atOnce = 1
    charge.retryAt = now + backoffMs(charge.failures)
    this.#suspects.push(charge)
    return false
  }

  /** Sets a charge aside that is at fault; it is tried again rarely. */
  keepAside(charge: Charge, now: number): void {
    charge.retryAt = now + SET_ASIDE_RETRY_MS
    this.#setAside.add(charge)
  }

  /** Puts the charges that were set aside back into the queue, each alone, as if they were new. */
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
    yield* this.#queue
    yield* this.#setAside
  }
}

/** Returns how many of the first of a line go together: at least one, if there is one. */
function fitting(line: readonly Charge[], most: number): number {
  let count = 0
  let bytes = 0
  for (const charge of line) {
    bytes += charge.bytes
    if (count === most || (count > 0 && bytes > MAX_BYTES_AT_ONCE)) break
    count++
  }
  return count
}

function backoffMs(failures: number): number {
  return RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? 0
}
