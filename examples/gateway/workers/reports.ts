import type { Worker } from 'node:cluster'
import { singleFlight } from '../single-flight.ts'
import { MergedMetrics, type WorkerScrape } from './merged-metrics.ts'
import { type Figures, type FromWorker, type Report, sendToWorker, type Topic } from './messages.ts'

/** How long to wait for reports. The report of a worker that is late has no figures. */
const REPORT_TIMEOUT_MS = 1000

interface Round {
  readonly waitingFor: Set<Worker>
  readonly figures: Map<Worker, Figures[Topic]>
  end(): void
}

/** Collects the reports of all workers in the primary process, on behalf of the worker that got the request. */
export class WorkerReports {
  readonly #numbers = new Map<Worker, number>()
  /** The workers that serve, or finish their last calls. */
  readonly #ready = new Set<Worker>()
  readonly #rounds = new Map<number, Round>()
  readonly #metrics = new MergedMetrics<Worker>()
  #begun = 0
  /** At most one round per topic runs at a time; all workers that ask share it. */
  readonly #reports: { readonly [About in Topic]: () => Promise<Report[]> } = {
    metrics: singleFlight(() => this.#merged()),
    lines: singleFlight(() => this.#collect('lines')),
  }

  /** Assigns a number to a new worker and returns it. Answers the worker's requests until it ends. */
  add(worker: Worker): number {
    const taken = new Set(this.#numbers.values())
    let number = 1
    while (taken.has(number)) number++
    this.#numbers.set(worker, number)
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'ready') this.#ready.add(worker)
      else if (message.kind === 'ask') void this.#answer(worker, message.ask, message.about)
      else if (message.kind === 'figures') this.#note(worker, message.round, message.figures)
    })
    worker.once('exit', () => {
      this.#numbers.delete(worker)
      this.#ready.delete(worker)
      this.#metrics.end(worker)
      for (const round of this.#rounds.values()) this.#remove(round, worker)
    })
    return number
  }

  async #answer(asker: Worker, ask: number, about: Topic): Promise<void> {
    const reports = await this.#reports[about]()
    sendToWorker(asker, { kind: 'reports', ask, reports })
  }

  /** One report, of this process, with the metrics of all workers. */
  async #merged(): Promise<Report[]> {
    const scrapes = new Map<Worker, WorkerScrape>()
    const workers = new Map([...this.#numbers].map(([worker, number]) => [number, worker]))
    for (const { worker: number, figures } of await this.#collect('metrics')) {
      const worker = workers.get(number)
      if (worker && this.#numbers.has(worker)) scrapes.set(worker, { number, text: figures as string | null })
    }
    return [{ worker: 0, pid: process.pid, figures: this.#metrics.merge(scrapes) }]
  }

  async #collect(about: Topic): Promise<Report[]> {
    const number = this.#begun++
    const workers = [...this.#ready].map((worker) => ({
      worker,
      number: this.#numbers.get(worker) ?? 0,
      pid: worker.process.pid ?? 0,
    }))
    const { promise, resolve } = Promise.withResolvers<void>()
    const collected = new Map<Worker, Figures[Topic]>()
    const round: Round = { waitingFor: new Set(this.#ready), figures: collected, end: resolve }
    this.#rounds.set(number, round)
    for (const { worker } of workers) {
      if (worker.isConnected()) sendToWorker(worker, { kind: 'report', round: number, about })
      else this.#remove(round, worker)
    }
    const late = setTimeout(resolve, REPORT_TIMEOUT_MS)
    await promise
    clearTimeout(late)
    this.#rounds.delete(number)
    return workers
      .map(({ worker, number, pid }) => ({ worker: number, pid, figures: collected.get(worker) ?? null }))
      .sort((one, other) => one.worker - other.worker)
  }

  #note(worker: Worker, number: number, figures: Figures[Topic]): void {
    const round = this.#rounds.get(number)
    if (!round?.waitingFor.has(worker)) return
    round.figures.set(worker, figures)
    this.#remove(round, worker)
  }

  /** Stops waiting for a worker; ends the round if it was the last one. */
  #remove(round: Round, worker: Worker): void {
    round.waitingFor.delete(worker)
    if (round.waitingFor.size === 0) round.end()
  }
}

/**
 * How long to wait for the primary process, which waits one second for the workers. After that, a worker reports itself
 * only.
 */
const PRIMARY_TIMEOUT_MS = 2000

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
    const late = setTimeout(() => resolve(undefined), PRIMARY_TIMEOUT_MS)
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
