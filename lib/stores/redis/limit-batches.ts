import type { StoreGuard } from '../../core/store-guard/index.ts'
import type { Demand, Verdict } from '../../middleware/rate-limit/index.ts'
import { type BatchReply, LimitBatch, readVerdicts } from './limit-batch.ts'

/** What {@link LimitBatches} needs of its store. */
export interface BatchPeer {
  /** One script on Redis. */
  send(batch: LimitBatch): Promise<BatchReply>
  /** A demand that was asked got no answer in time; one may still come. */
  unanswered(demand: Demand): void
  /** The answer to such a demand, after all; undefined: there will be none. */
  late(demand: Demand, verdict: Verdict | undefined, now: number): void
  /** Slots that came back without Redis saying so. */
  unconfirmed(key: string, ids: readonly string[]): void
  admitted(demand: Demand): void
}

/**
 * Gathers what is asked and given back in one turn of the event loop, and sends it at the end of that turn. A batch that
 * fails is the failure of each demand in it.
 */
export class LimitBatches {
  readonly #peer: BatchPeer
  readonly #guard: StoreGuard
  #open: LimitBatch | undefined
  /** Settles when what was sent last is answered, or given up. */
  #sent: Promise<void> = Promise.resolve()

  constructor(peer: BatchPeer, guard: StoreGuard) {
    this.#peer = peer
    this.#guard = guard
  }

  /** @throws {StoreAway} (by rejecting) when the batch failed. Ask the guard first whether it may be asked. */
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

  /** Sends what is gathered. Resolves when that, and what was sent before, is answered or given up; never rejects. */
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
      reply = this.#peer.send(batch)
      return reply
    }
    const settled = this.#guarded(batch, send).then(
      (answer) => this.#settle(batch, answer),
      (error: unknown) => this.#fail(batch, error, reply),
    )
    // Redis answers in order, and what was sent before is given up before.
    this.#sent = settled
  }

  /** A demand was let through before. Of what only ended nobody waits for the pardons, which are no reason for an outage. */
  #guarded(batch: LimitBatch, send: () => Promise<BatchReply>): Promise<BatchReply> {
    if (batch.asked.length > 0) return this.#guard.insist(send)
    return batch.returned.size > 0 ? this.#guard.run(send) : this.#guard.retry(send)
  }

  #settle({ asked }: LimitBatch, answer: BatchReply): void {
    if (asked.length === 0) return
    try {
      readVerdicts(asked, answer, ({ demand, resolve }, verdict) => {
        if (!verdict.refusedBy) this.#peer.admitted(demand)
        resolve(verdict)
      })
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
  }

  #fail({ asked, returned }: LimitBatch, error: unknown, reply: Promise<BatchReply> | undefined): void {
    for (const [key, ids] of returned) this.#peer.unconfirmed(key, ids)
    for (const { demand, reject } of asked) {
      this.#peer.unanswered(demand)
      reject(error)
    }
    reply?.then(
      (answer) =>
        readVerdicts(asked, answer, ({ demand }, verdict) =>
          this.#peer.late(demand, verdict, Number(answer[0])),
        ),
      // The guard has told of it, and what was admitted nobody will know: at worst too few get through.
      () => {
        for (const { demand } of asked) this.#peer.late(demand, undefined, 0)
      },
    )
  }
}
