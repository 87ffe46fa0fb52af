import type { Figures, FromWorker, Report, Topic } from './worker-messages.ts'

/**
 * How long to wait for the primary process, which waits one second for the workers. After that, a worker reports itself
 * only.
 */
const REPORT_TIMEOUT_MS = 2000

/** Functions that return the figures of a worker. */
export type FigureSources = { readonly [About in Topic]: () => Figures[About] | Promise<Figures[About]> }

/** Asks all workers for their figures, on behalf of the worker that got the request. */
export class Peers {
  readonly #send: (message: FromWorker) => void
  readonly #worker: number
  readonly #waiting = new Map<number, (reports: readonly Report[]) => void>()
  #sources: FigureSources | undefined
  #asked = 0
  /** Whether this worker logs what all of them would log. The primary process names one. */
  logsForAll: boolean

  constructor(
    send: (message: FromWorker) => void,
    { worker, logsForAll }: { readonly worker: number; readonly logsForAll: boolean },
  ) {
    this.#send = send
    this.#worker = worker
    this.logsForAll = logsForAll
  }

  /** Sets the sources of this worker's figures. */
  reportFrom(sources: FigureSources): void {
    this.#sources = sources
  }

  /** Returns the figures of all workers, ordered by number; null for a worker that does not answer within a second. */
  async ask<About extends Topic>(about: About): Promise<readonly Report<About>[]> {
    const ask = this.#asked++
    const { promise, resolve } = Promise.withResolvers<readonly Report[] | undefined>()
    this.#waiting.set(ask, resolve)
    const late = setTimeout(() => resolve(undefined), REPORT_TIMEOUT_MS)
    this.#send({ kind: 'ask', ask, about })
    const reports = await promise
    clearTimeout(late)
    this.#waiting.delete(ask)
    if (reports) return reports as readonly Report<About>[]
    return [{ worker: this.#worker, pid: process.pid, figures: (await this.#sources?.[about]()) ?? null }]
  }

  /** Sends the figures of this worker to the primary process. */
  async report(round: number, about: Topic): Promise<void> {
    const figures = await this.#sources?.[about]()
    if (figures !== undefined) this.#send({ kind: 'figures', round, figures })
  }

  /** Takes the reports that {@link ask} waits for. */
  receive(ask: number, reports: readonly Report[]): void {
    this.#waiting.get(ask)?.(reports)
  }
}
