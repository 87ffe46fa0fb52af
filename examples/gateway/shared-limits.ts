import type { Worker } from 'node:cluster'
import type { Logger } from 'express-model-gateway'
import { StoreGuard } from 'express-model-gateway'
import type { Demand, LimitStore, MemoryLimitStore, Verdict } from 'express-model-gateway/rate-limit'
import { type FromWorker, type LimitAnswer, type LimitAsk, sendToWorker } from './worker-messages.ts'

/** Answers a worker's requests for limits in the primary process, and releases its slots when it ends. */
export function shareLimits(worker: Worker, store: MemoryLimitStore): void {
  const withSlots = new Map<string, Demand>()

  worker.on('message', (message: FromWorker) => {
    if (message.kind !== 'limits') return
    const verdicts = message.asks.flatMap((ask) => perform(ask) ?? [])
    if (verdicts.length > 0) sendToWorker(worker, { kind: 'verdicts', verdicts })
  })
  worker.once('exit', () => {
    for (const demand of withSlots.values()) store.release(demand)
  })

  function perform(ask: LimitAsk): LimitAnswer | undefined {
    switch (ask.to) {
      case 'admit': {
        const verdict = store.admit(ask.demand)
        if (!verdict.refusedBy) track(ask.demand)
        return { ask: ask.number, verdict }
      }
      case 'hold':
        store.hold(ask.demand)
        track(ask.demand)
        return undefined
      case 'release':
        store.release(ask.demand)
        withSlots.delete(ask.demand.id)
        return undefined
      case 'ended':
        store.ended(ask.sender)
        return undefined
    }
  }

  function track(demand: Demand): void {
    if (demand.slots.length > 0) withSlots.set(demand.id, demand)
  }
}

/**
 * A limit store that all workers of one machine share. The primary process counts, so that limits are exact. All requests
 * of one turn of the event loop are sent in one message.
 */
export class SharedLimitStore implements LimitStore {
  readonly #send: (message: FromWorker) => void
  readonly #guard: StoreGuard
  readonly #waiting = new Map<number, (verdict: Verdict) => void>()
  #asks: LimitAsk[] = []
  #asked = 0

  constructor(send: (message: FromWorker) => void, logger: Logger) {
    this.#send = send
    this.#guard = new StoreGuard({ name: 'shared limits', logger })
  }

  /** Whether the primary process does not answer. */
  get away(): boolean {
    return this.#guard.away
  }

  /** The number of outages, for metrics. */
  get outages(): number {
    return this.#guard.outages
  }

  async admit(demand: Demand): Promise<Verdict> {
    const number = this.#asked++
    try {
      const verdict = await this.#guard.run(() => {
        const { promise, resolve } = Promise.withResolvers<Verdict>()
        this.#waiting.set(number, resolve)
        this.#ask({ to: 'admit', number, demand })
        return promise
      })
      return { ...verdict, refusedBy: limitOf(demand, verdict) }
    } finally {
      this.#waiting.delete(number)
    }
  }

  hold(demand: Demand): void {
    this.#ask({ to: 'hold', demand })
  }

  release(demand: Demand): void {
    this.#ask({ to: 'release', demand })
  }

  ended(sender: string): void {
    this.#ask({ to: 'ended', sender })
  }

  /** Takes the verdicts of a message. */
  answer(verdicts: readonly LimitAnswer[]): void {
    for (const { ask, verdict } of verdicts) this.#waiting.get(ask)?.(verdict)
  }

  #ask(ask: LimitAsk): void {
    this.#asks.push(ask)
    if (this.#asks.length > 1) return
    setImmediate(() => {
      const asks = this.#asks
      this.#asks = []
      this.#send({ kind: 'limits', asks })
    })
  }
}

/** Returns the object of the demand for the limit that refused, because callers compare it by identity. */
function limitOf({ charges, slots }: Demand, { refusedBy }: Verdict): Verdict['refusedBy'] {
  return refusedBy && [...charges, ...slots].find(({ key }) => key === refusedBy.key)
}
