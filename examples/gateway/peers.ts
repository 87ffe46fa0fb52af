import type { Figures, FromWorker, Report, Topic } from './worker-messages.ts'

/** The primary process waits for workers for a second; where it is gone itself, this one speaks for itself. */
const HEARS_WITHIN_MS = 2000

/** How a worker finds out what it tells of itself. */
export type Teller = { readonly [About in Topic]: () => Figures[About] | Promise<Figures[About]> }

/** All workers, seen from one of them, which is asked from outside how all do. */
export class Peers {
  readonly #send: (message: FromWorker) => void
  readonly #worker: number
  readonly #waiting = new Map<number, (reports: readonly Report[]) => void>()
  #teller: Teller | undefined
  #asked = 0

  /** @param worker the number of this one. */
  constructor(send: (message: FromWorker) => void, worker: number) {
    this.#send = send
    this.#worker = worker
  }

  /** What this one tells of itself from now on. */
  tellBy(teller: Teller): void {
    this.#teller = teller
  }

  /** How all do, in the order of their numbers, this one among them; those that do not answer in a second with null. */
  async ask<About extends Topic>(about: About): Promise<readonly Report<About>[]> {
    const ask = this.#asked++
    const { promise, resolve } = Promise.withResolvers<readonly Report[] | undefined>()
    this.#waiting.set(ask, resolve)
    const late = setTimeout(() => resolve(undefined), HEARS_WITHIN_MS)
    this.#send({ kind: 'ask', ask, about })
    const reports = await promise
    clearTimeout(late)
    this.#waiting.delete(ask)
    if (reports) return reports as readonly Report<About>[]
    return [{ worker: this.#worker, pid: process.pid, figures: (await this.#teller?.[about]()) ?? null }]
  }

  /** The primary process wants to know how this one does. */
  async tell(round: number, about: Topic): Promise<void> {
    const figures = await this.#teller?.[about]()
    if (figures !== undefined) this.#send({ kind: 'tells', round, figures })
  }

  /** What was asked for has come. */
  hear(ask: number, reports: readonly Report[]): void {
    this.#waiting.get(ask)?.(reports)
  }
}
