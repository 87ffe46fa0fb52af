import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { Demand, Verdict } from '../../middleware/rate-limit/index.ts'
import { type BatchReply, LimitBatch, readVerdicts } from './limit-batch.ts'

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

  giveBack(key: string, id: string): void {
    this.#gathering().giveBack(key, id)
    this.#sendIfFull()
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
  }

  /** Sends a batch. The guard has admitted its demands before; ended calls alone must not begin an outage. */
  #guarded(batch: LimitBatch, send: () => Promise<BatchReply>): Promise<BatchReply> {
    if (batch.asked.length > 0) return this.#guard.insist(send)
    return batch.returned.size > 0 ? this.#guard.run(send) : this.#guard.retry(send)
  }

  #settle({ asked }: LimitBatch, answer: BatchReply): void {
    if (asked.length === 0) return
    try {
      readVerdicts(asked, answer, ({ demand, resolve }, verdict) => {
        if (!verdict.refusedBy) this.#owner.admitted(demand)
        resolve(verdict)
      })
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
    reply?.then(
      (answer) =>
        readVerdicts(asked, answer, ({ demand }, verdict) =>
          this.#owner.late(demand, verdict, Number(answer[0])),
        ),
      // It stays unknown what Redis admitted. At worst, too few requests are admitted.
      () => {
        for (const { demand } of asked) this.#owner.late(demand, undefined, 0)
      },
    )
  }
}
