import type { Settlement, SettlementResult } from '../ledger.ts'
import { type Awaited, earliest } from './deadlines.ts'

/** Something to be settled. */
export interface Settling {
  /** As it is handed to the ledger; the same each time. */
  settlement(): Settlement
  /**
   * The ledger has answered.
   *
   * @param repeated whether it may have been settled before, without an answer.
   */
  settled(result: SettlementResult, repeated: boolean): void
  /** It fails while others are settled. True when it has become something else, which is worth another try. */
  setAside(): boolean
}

/** A settlement's place in the queue. Times are milliseconds. */
export class Place implements Awaited<Place> {
  readonly what: Settling
  since: number
  /** How often it was handed to the ledger without an answer. */
  unanswered = 0
  /** How often it failed alone. */
  failures = 0
  /** How many others had been settled when it first did. */
  settledBefore = 0
  retryAt = 0
  /** Whether the log knows that it is set aside. */
  told = false
  result: SettlementResult | undefined
  deadline: Awaited<Place>['deadline']
  /** Tells whoever waits for it. */
  confirm: ((result: SettlementResult | 'late') => void) | undefined

  constructor(what: Settling, since: number) {
    this.what = what
    this.since = since
  }
}

const AT_ONCE = 500
const RETRY_MS = [50, 100, 200, 400, 500] as const
const SET_ASIDE_RETRY_MS = 30_000
/** One that failed alone that often, while others were settled, is at fault itself. */
export const FAILURES_ALONE = 3

/** How long nothing is handed after so many failures in a row. */
export function backoffMs(failures: number): number {
  return RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? 0
}

/** Settlements that wait, and which of them go next. */
export class WaitingSettlements {
  #line: Place[] = []
  /** Failed alone, and are tried again alone. */
  #suspects: Place[] = []
  readonly #setAside = new Set<Place>()
  #suspectsTurn = false
  /** Fewer after a failure, so that one that fails is soon alone. */
  #atOnce = AT_ONCE

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

  /** Whether those that wait may be at fault themselves, all of them. */
  get areSuspect(): boolean {
    return this.#line.length === 0 && this.#suspects.every(({ failures }) => failures >= FAILURES_ALONE)
  }

  add(place: Place): void {
    this.#line.push(place)
  }

  /** Takes out what was never handed. */
  remove(what: Settling): Place | undefined {
    const at = this.#line.findIndex((place) => place.what === what)
    return at < 0 ? undefined : this.#line.splice(at, 1)[0]
  }

  /** Takes those that go next; none where none is due yet. */
  take(now: number): readonly Place[] {
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
    for (const place of this.#setAside) {
      if (place.retryAt > now) continue
      this.#setAside.delete(place)
      return [place]
    }
    return []
  }

  /** When the next is due, where none is now. */
  get dueAt(): number | undefined {
    if (this.#suspects[0]) return this.#suspects[0].retryAt
    const due = [...this.#setAside].map(({ retryAt }) => retryAt)
    return due.length > 0 ? Math.min(...due) : undefined
  }

  /** They were settled: more at once the next time. */
  settled(): void {
    this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 8)
  }

  /** They failed together: they go next, fewer at once. */
  putBack(batch: readonly Place[]): void {
    this.#atOnce = Math.max(1, Math.ceil(batch.length / 8))
    this.#line = [...batch, ...this.#line]
  }

  /** It goes first. */
  putFirst(place: Place): void {
    this.#line.unshift(place)
  }

  /** It failed alone: it is tried again alone, and holds up nobody meanwhile. */
  suspect(place: Place, now: number): void {
    this.#atOnce = 1
    place.retryAt = now + backoffMs(place.failures)
    this.#suspects.push(place)
  }

  /** It is at fault itself, and is tried again rarely. */
  keepAside(place: Place, now: number): void {
    place.retryAt = now + SET_ASIDE_RETRY_MS
    this.#setAside.add(place)
  }

  /** Those set aside are tried again at once, each alone, as if they had come now. */
  readmit(now: number): void {
    for (const place of this.#setAside) {
      place.since = now
      place.retryAt = now
      this.#suspects.push(place)
    }
    this.#setAside.clear()
  }

  *all(): Iterable<Place> {
    yield* this.#suspects
    yield* this.#line
    yield* this.#setAside
  }
}
