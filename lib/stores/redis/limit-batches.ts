import { StoreAway, type StoreGuard } from '../../core/store-guard/index.ts'
import type { Demand, Verdict } from '../../middleware/rate-limit/index.ts'
import { type Asked, type BatchReply, LimitBatch, readVerdicts } from './limit-batch.ts'

/** The store behind {@link LimitBatches}: sends batches, and learns what became of their parts. */
export interface BatchOwner {
  /** Runs the script on Redis. */
  send(batch: LimitBatch): Promise<BatchReply>
  /** Notes a demand that Redis admitted in time. */
  admitted(demand: Demand): void
  /** Notes a demand that Redis did not answer in time. It may still answer. */
  unanswered(demand: Demand): void
  /** Notes the late answer to such a demand; undefined: there will be none. */
  late(demand: Demand, verdict: Verdict | undefined, now: number): void
  /** Notes returned slots that Redis did not confirm in time. */
  unconfirmed(key: string, ids: readonly string[]): void
  /** Notes a key that does not hold what it should. */
  broken(key: string): void
}

/**
 * Gathers what one turn of the event loop asks and gives back, and sends it at the end of the turn. A batch that fails
 * fails each demand in it.
 */
export class LimitBatches {
  readonly #owner: BatchOwner
  readonly #guard: StoreGuard
  #open: LimitBatch | undefined
  /** Resolves when the last batch is answered or given up. */
  #sent: Promise<void> = Promise.resolve()

  constructor(owner: BatchOwner, guard: StoreGuard) {
    this.#owner = owner
    this.#guard = guard
  }

  /** Asks for a demand. Rejects with StoreAway when the batch fails. Check the guard's `mayAsk` first. */
  ask(demand: Demand): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      this.#gathering().asked.push({ demand, resolve, reject })
      this.#sendIfFull()
    })
  }

  /** Gives a slot back. Resolves when Redis has confirmed it, or the guard has given up. Never rejects. */
  giveBack(key: string, id: string): Promise<void> {
    const batch = this.#gathering()
    batch.giveBack(key, id)
    this.#sendIfFull()
    return batch.answered
  }

  ended(sender: string): void {
    this.#gathering().ended(sender)
    this.#sendIfFull()
  }

  /** Sends what is gathered. Resolves when Redis has answered it all, or the guard has given up. Never rejects. */
  flush(): Promise<void> {
    if (this.#open) this.#send()
    return this.#sent
  }

  #gathering(): LimitBatch {
    if (this.#open) return this.#open
    const batch = new LimitBatch()
    this.#open = batch
    setImmediate(() => {
      if (this.#open === batch) this.#send()
    })
    return batch
  }

  #sendIfFull(): void {
    if (this.#open?.full) this.#send()
  }

  #send(): void {
    const batch = this.#open as LimitBatch
    this.#open = undefined
    // What Redis lets pass in an outage, such as the return of a slot, must not end it.
    if (this.#guard.away) batch.probe()
    let reply: Promise<BatchReply> | undefined
    const send = () => {
      reply = this.#owner.send(batch)
      return reply
    }
    const settled = this.#guarded(batch, send).then(
      (answer) => this.#settle(batch, answer),
      (error: unknown) => this.#fail(batch, error, reply),
    )
    // Redis answers in order, and the guard gives up in order.
    this.#sent = settled
    void settled.then(batch.tellAnswered)
  }

  /** Sends a batch. The guard has admitted its demands before; ended calls alone must not begin an outage. */
  #guarded(batch: LimitBatch, send: () => Promise<BatchReply>): Promise<BatchReply> {
    if (batch.asked.length > 0) return this.#guard.insist(send)
    return batch.returned.size > 0 ? this.#guard.run(send) : this.#guard.retry(send)
  }

  #settle({ asked, keys }: LimitBatch, answer: BatchReply): void {
    if (asked.length === 0) return
    try {
      readVerdicts(
        asked,
        answer,
        ({ demand, resolve }, verdict) => {
          if (!verdict.refusedBy) this.#owner.admitted(demand)
          resolve(verdict)
        },
        ({ reject }, place) => {
          const key = keys[place - 1] as string
          this.#owner.broken(key)
          reject(new StoreAway(`${key} does not hold what the limits keep there`))
        },
      )
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
  }

  #fail({ asked, returned }: LimitBatch, error: unknown, reply: Promise<BatchReply> | undefined): void {
    for (const [key, ids] of returned) this.#owner.unconfirmed(key, ids)
    for (const { demand, reject } of asked) {
      this.#owner.unanswered(demand)
      reject(error)
    }
    // Where it stays unknown what Redis admitted, too few requests are admitted at worst.
    const unknown = ({ demand }: Asked) => this.#owner.late(demand, undefined, 0)
    reply
      ?.then((answer) => {
        const tell = ({ demand }: Asked, verdict: Verdict) =>
          this.#owner.late(demand, verdict, Number(answer[0]))
        readVerdicts(asked, answer, tell, unknown)
      })
      .catch(() => asked.forEach(unknown))
  }
}
