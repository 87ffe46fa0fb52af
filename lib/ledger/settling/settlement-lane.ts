import type { Ledger, SettlementResult } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import type { Charge } from './charge.ts'
import { earliest } from './deadlines.ts'
import { type Progress, WaitingCharges } from './waiting-charges.ts'

/** The parts that {@link SettlementLane} works with. */
export interface SettlementLaneDeps {
  readonly ledger: Pick<Ledger, 'settle' | 'gathers'>
  readonly clock: Clock
  readonly progress: Progress
  /** Whether an operation may begin now. If not, {@link SettlementLane.hand} is called when one may. */
  readonly mayHand: (lane: SettlementLane) => boolean
  /** Runs after each operation. */
  readonly onHanded: () => void
  /** Takes an answer of the ledger. */
  readonly onResult: (charge: Charge, result: SettlementResult) => void
  /** Takes a failure of several charges. Returns those that go again here; undefined if it is not known which are at fault. */
  readonly onFailed: (batch: readonly Charge[], error: unknown) => readonly Charge[] | undefined
  /** Takes a charge that fails while others are written. */
  readonly onAtFault: (charge: Charge, error: unknown) => void
  /** Takes an answer to what was left to others by {@link SettlementLane.leave}. */
  readonly onLeft: (charge: Charge, result: SettlementResult) => void
}

const RESULTS: ReadonlySet<SettlementResult> = new Set(['written', 'known', 'fenced'])
const NOTHING: readonly Charge[] = []

/**
 * Hands charges and voids to the ledger in their order, one operation at a time. When it has ended, the next one takes
 * all that wait. A ledger that gathers also gets what the current turn of the event loop adds: of many answers that are
 * read in one turn, the first would otherwise go alone, and the others would wait for its commit.
 */
export class SettlementLane {
  readonly waiting: WaitingCharges
  readonly #deps: SettlementLaneDeps
  #flying = NOTHING
  #handedAt = 0
  #callOff: (() => void) | undefined
  #handing = false
  #gathering = false

  constructor(deps: SettlementLaneDeps) {
    this.#deps = deps
    this.waiting = new WaitingCharges(deps.progress)
  }

  /** The charges that the ledger has and has not answered. */
  get flying(): readonly Charge[] {
    return this.#flying
  }

  /** Since when the ledger has not answered; undefined if it has nothing. */
  get unansweredSince(): number | undefined {
    return this.#flying.length > 0 ? this.#handedAt : undefined
  }

  /** Returns what the ledger has and does not answer, for others to hand over, and goes on with the rest. */
  leave(): readonly Charge[] {
    const left = this.#flying
    this.#flying = NOTHING
    for (const charge of left) charge.unanswered++
    return left
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    return this.waiting.size + this.#flying.length
  }

  /** Since when the oldest charge has waited. */
  get oldest(): number | undefined {
    return earliest(this.#flying[0]?.since, this.waiting.oldest)
  }

  /** Hands a charge over at once if the ledger is free and does not gather; queues it otherwise. */
  put(charge: Charge): void {
    const isFree = !this.#handing && this.#flying.length === 0 && this.waiting.size === 0
    if (isFree && !this.#deps.ledger.gathers && this.#deps.clock.now() >= this.waiting.resumeAt) {
      this.#handing = true
      this.#commit([charge])
      this.#handing = false
      if (this.waiting.size > 0) this.hand()
    } else {
      this.waiting.add(charge)
      this.handSoon()
    }
  }

  handSoon(): void {
    if (!this.#deps.ledger.gathers) {
      this.hand()
    } else if (!this.#gathering && this.#flying.length === 0) {
      this.#gathering = true
      setImmediate(SettlementLane.#handGathered, this)
    }
  }

  static #handGathered(lane: SettlementLane): void {
    lane.#gathering = false
    lane.hand()
  }

  /** Hands over what is due. */
  hand(): void {
    if (this.#handing || this.#flying.length > 0) return
    this.#handing = true
    while (this.#flying.length === 0) {
      const now = this.#deps.clock.now()
      if (now < this.waiting.resumeAt) {
        this.#handLater(this.waiting.resumeAt - now, true)
        break
      }
      if (!this.#deps.mayHand(this)) break
      const batch = this.waiting.take(now)
      if (batch.length === 0) {
        const due = this.waiting.dueAt
        if (due !== undefined) this.#handLater(due - now, this.waiting.size > 0)
        break
      }
      this.#commit(batch)
    }
    this.#handing = false
  }

  /** @param keepsAlive whether the timer keeps the process alive, for charges that the ledger may still take. */
  #handLater(inMs: number, keepsAlive: boolean): void {
    this.#callOff?.()
    this.#callOff = this.#deps.clock.after(
      inMs,
      () => {
        this.#callOff = undefined
        this.hand()
      },
      keepsAlive,
    )
  }

  #commit(batch: readonly Charge[]): void {
    this.#flying = batch
    this.#handedAt = this.#deps.clock.now()
    try {
      for (let i = 0; i < batch.length; i++) batch[i]?.hand()
      const answer = this.#deps.ledger.settle(batch)
      if ('then' in answer) this.#concludeLater(batch, answer)
      else this.#succeeded(batch, answer)
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  #concludeLater(batch: readonly Charge[], answer: Promise<readonly SettlementResult[]>): void {
    const done = (step: () => void) => {
      if (this.#flying === batch) step()
      this.handSoon()
    }
    void answer.then(
      (results) => {
        if (this.#flying !== batch) this.#answeredLeft(batch, results)
        done(() => this.#succeeded(batch, results))
      },
      (error: unknown) => done(() => this.#failed(batch, error)),
    )
  }

  #succeeded(batch: readonly Charge[], results: readonly SettlementResult[]): void {
    this.#flying = NOTHING
    this.waiting.settled(batch.length)
    for (let i = 0; i < batch.length; i++) {
      const charge = batch[i] as Charge
      const result = results[i]
      if (result && RESULTS.has(result)) this.#deps.onResult(charge, result)
      else this.#failed([charge], new Error('the ledger did not answer every settlement'))
    }
    this.#deps.onHanded()
  }

  #answeredLeft(batch: readonly Charge[], results: readonly SettlementResult[]): void {
    for (const [i, charge] of batch.entries()) {
      const result = results[i]
      if (result && RESULTS.has(result)) this.#deps.onLeft(charge, result)
    }
  }

  #failed(batch: readonly Charge[], error: unknown): void {
    this.#flying = NOTHING
    this.waiting.lastError = error
    for (const charge of batch) charge.unanswered++
    const others = this.#deps.onFailed(batch, error)
    const [alone, other] = batch
    if (others) this.waiting.putBack(others)
    else if (!alone || other) this.waiting.failedTogether(batch)
    else if (this.waiting.failedAlone(alone, this.#deps.clock.now())) this.#deps.onAtFault(alone, error)
    this.#deps.onHanded()
  }
}
