import type { LineNote, StandingNote } from './line-state-store.ts'

/** For how long a process that is busy with refusing calls may keep others from probing, in milliseconds. */
const TURN_MS = 1000
/** After the death of a process that probes, others may probe this much later, in milliseconds. */
const CLAIM_MS = 3000
/** A process that has refused two calls within this time, in milliseconds, will soon have one for a probe. */
const BUSY_MS = 1000

/**
 * Who of all processes may probe with a circuit. In a process that is busy, calls wait for its turn, which it asks for: when
 * circuits become half open, they do in all processes at once. In one that is not, a call may probe at once if nobody else is
 * known to: it would come in vain otherwise, and the next might come to yet another process.
 */
export class ProbeClaims {
  readonly #id: string
  readonly #process: string
  #wantedAt = -Infinity
  #wantedBefore = -Infinity
  #isAsking = false
  #isTold = false
  #heldBy: string | undefined
  #heldUntil = 0

  constructor(id: string, process: string) {
    this.#id = id
    this.#process = process
  }

  /** Whether a call of this process may probe now. */
  get mayProbe(): boolean {
    const now = performance.now()
    if (now < this.#heldUntil) return this.#heldBy === this.#process
    return now - this.#wantedBefore > BUSY_MS
  }

  /** Whether the others know of a probe of this process, and must be told of its end. */
  get isTold(): boolean {
    return this.#isTold
  }

  /** A call was not let through. */
  wanted(): void {
    this.#wantedBefore = this.#wantedAt
    this.#wantedAt = performance.now()
  }

  /** Asks for the turn, if this process is busy and nobody has it. Returns whether it asks. */
  ask(): boolean {
    const now = performance.now()
    if (now < this.#heldUntil || now - this.#wantedBefore > BUSY_MS) return false
    this.#isAsking = true
    return true
  }

  /** Returns what to tell the others. */
  note(isProbing: boolean): LineNote | undefined {
    const lifeMs = isProbing ? CLAIM_MS : this.#isAsking ? TURN_MS : 0
    if (lifeMs === 0 && !this.#isTold) return undefined
    this.#isTold = isProbing
    this.#isAsking = false
    return { id: this.#id, value: this.#process, lifeMs, when: 'free' }
  }

  read(standing: ReadonlyMap<string, StandingNote>): void {
    const claim = standing.get(this.#id)
    this.#heldBy = claim?.value
    this.#heldUntil = claim ? performance.now() + claim.leftMs : 0
  }
}
