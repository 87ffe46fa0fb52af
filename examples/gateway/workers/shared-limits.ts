import type { Worker } from 'node:cluster'
import { type Logger, StoreGuard } from 'express-model-gateway'
import type { Demand, LimitStore, MemoryLimitStore, Verdict } from 'express-model-gateway/rate-limit'
import { type FromWorker, type LimitAnswer, type LimitAsk, sendToWorker } from './messages.ts'

/** Answers a worker's requests for limits in the primary process, and releases its slots when it ends. */
export function shareLimits(worker: Worker, store: MemoryLimitStore): void {
  const withSlots = new Map<string, Demand>()
  /** The admissions under way, by the ids of their demands. */
  const admissions = new Map<string, Promise<Verdict>>()

  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'limits') void answer(message.asks)
  })
  worker.once('exit', () => {
    for (const demand of withSlots.values()) store.release(demand)
  })

  async function answer(asks: readonly LimitAsk[]): Promise<void> {
    const verdicts = (await Promise.all(asks.map(perform))).filter((each) => each !== undefined)
    if (verdicts.length > 0) sendToWorker(worker, { kind: 'verdicts', verdicts })
  }

  async function perform(ask: LimitAsk): Promise<LimitAnswer | undefined> {
    switch (ask.to) {
      case 'admit':
        return { ask: ask.number, verdict: sentVerdict(await admit(ask.demand)) }
      case 'peek':
        return { ask: ask.number, verdict: sentVerdict(await store.peek(ask.demand)) }
      case 'hold':
        store.hold(ask.demand)
        track(ask.demand)
        return undefined
      case 'release': {
        // After a pause of this process, the request and the release of a slot arrive together.
        await admissions.get(ask.id)?.catch(() => {})
        const demand = withSlots.get(ask.id)
        if (demand) await store.release(demand)
        withSlots.delete(ask.id)
        return { ask: ask.number }
      }
      case 'book':
        await store.book(ask.key, ask.points, ask.windowMs)
        return { ask: ask.number }
    }
  }

  async function admit(demand: Demand): Promise<Verdict> {
    if (demand.slots.length === 0) return store.admit(demand)
    const admission = store.admit(demand).then((verdict) => {
      if (!verdict.refusedBy) track(demand)
      return verdict
    })
    admissions.set(demand.id, admission)
    try {
      return await admission
    } finally {
      admissions.delete(demand.id)
    }
  }

  function track(demand: Demand): void {
    if (demand.slots.length > 0) withSlots.set(demand.id, demand)
  }
}

/** Returns a verdict with the members that a worker reads. The counts of a store have more. */
function sentVerdict({ refusedBy, waitMs, counts }: Verdict): Verdict {
  return { refusedBy, waitMs, counts: counts.map(({ used, resetMs }) => ({ used, resetMs })) }
}

/**
 * A limit store that all workers of one machine share. The primary process counts, so that limits are exact. All requests
 * of one turn of the event loop are sent in one message.
 */
export class SharedLimitStore implements LimitStore {
  readonly keepsTime = true
  readonly #send: (message: FromWorker) => void
  readonly #guard: StoreGuard
  readonly #waiting = new Map<number, (answer: LimitAnswer) => void>()
  /** The slots that the primary process has, or may have. */
  readonly #held = new Set<string>()
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
    if (demand.slots.length > 0) this.#held.add(demand.id)
    const { verdict } = await this.#guard.run(() =>
      this.#answerTo((number) => ({ to: 'admit', number, demand })),
    )
    const refusedBy = limitOf(demand, verdict as Verdict)
    if (refusedBy) this.#held.delete(demand.id)
    return { ...(verdict as Verdict), refusedBy }
  }

  hold(demand: Demand): void {
    this.#held.add(demand.id)
    this.#ask({ to: 'hold', demand })
  }

  /** Resolves when the primary process has the slots, or does not answer. */
  release(demand: Demand): Promise<void> | undefined {
    if (!this.#held.delete(demand.id)) return undefined
    const released = this.#answerTo((number) => ({ to: 'release', number, id: demand.id }))
    return this.#guard.retry(() => released).then(ignore, ignore)
  }

  async peek(demand: Demand): Promise<Verdict> {
    const { verdict } = await this.#guard.retry(() =>
      this.#answerTo((number) => ({ to: 'peek', number, demand })),
    )
    return { ...(verdict as Verdict), refusedBy: limitOf(demand, verdict as Verdict) }
  }

  async book(key: string, points: number, windowMs: number): Promise<void> {
    await this.#guard.retry(() => this.#answerTo((number) => ({ to: 'book', number, key, points, windowMs })))
  }

  /** Takes the answers of a message. */
  answer(answers: readonly LimitAnswer[]): void {
    for (const answer of answers) {
      this.#waiting.get(answer.ask)?.(answer)
      this.#waiting.delete(answer.ask)
    }
  }

  #answerTo(askWith: (number: number) => LimitAsk): Promise<LimitAnswer> {
    const number = this.#asked++
    const { promise, resolve } = Promise.withResolvers<LimitAnswer>()
    this.#waiting.set(number, resolve)
    this.#ask(askWith(number))
    return promise
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

function ignore(): void {}
