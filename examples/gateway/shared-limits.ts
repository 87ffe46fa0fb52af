import type { Worker } from 'node:cluster'
import type { Logger } from 'express-model-gateway'
import { StoreGuard } from 'express-model-gateway'
import type { Demand, LimitStore, MemoryLimitStore, Verdict } from 'express-model-gateway/rate-limit'
import { type FromWorker, type LimitAnswer, type LimitAsk, tellWorker } from './worker-messages.ts'

/** Decides, in the primary process, on what a worker asks; gives its slots back when it ends, however it does. */
export function shareLimits(worker: Worker, store: MemoryLimitStore): void {
  const held = new Map<string, Demand>()

  worker.on('message', (message: FromWorker) => {
    if (message.kind !== 'limits') return
    const verdicts = message.asks.flatMap((ask) => perform(ask) ?? [])
    if (verdicts.length > 0) tellWorker(worker, { kind: 'verdicts', verdicts })
  })
  worker.once('exit', () => {
    for (const demand of held.values()) store.release(demand)
  })

  function perform(ask: LimitAsk): LimitAnswer | undefined {
    switch (ask.to) {
      case 'admit': {
        const verdict = store.admit(ask.demand)
        if (!verdict.refusedBy) keep(ask.demand)
        return { ask: ask.number, verdict }
      }
      case 'hold':
        store.hold(ask.demand)
        keep(ask.demand)
        return undefined
      case 'release':
        store.release(ask.demand)
        held.delete(ask.demand.id)
        return undefined
      case 'ended':
        store.ended(ask.sender)
        return undefined
    }
  }

  function keep(demand: Demand): void {
    if (demand.slots.length > 0) held.set(demand.id, demand)
  }
}

/**
 * Limits that all workers of one machine share: counted in the primary process, exact. What is asked in one turn of the
 * event loop goes in one message.
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

  /** How often it did not, for metrics. */
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

  /** Takes verdicts that have come. */
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

/** The demand's own: whoever gets the verdict looks for it there. */
function limitOf({ charges, slots }: Demand, { refusedBy }: Verdict): Verdict['refusedBy'] {
  return refusedBy && [...charges, ...slots].find(({ key }) => key === refusedBy.key)
}
