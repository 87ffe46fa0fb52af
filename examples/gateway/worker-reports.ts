import type { Worker } from 'node:cluster'
import { sharedAnswer } from './shared-answer.ts'
import { type Figures, type FromWorker, type Report, type Topic, tellWorker } from './worker-messages.ts'

/** A worker that is busy for longer is left out, and that is told. */
const ANSWERS_WITHIN_MS = 1000

interface Round {
  readonly asked: Set<Worker>
  readonly told: Map<Worker, Figures[Topic]>
  end(): void
}

/** Asks, in the primary process, all workers how they do, for the one of them that was asked from outside. */
export class WorkerReports {
  readonly #numbers = new Map<Worker, number>()
  /** Those that serve, or still finish what they have begun. */
  readonly #ready = new Set<Worker>()
  readonly #rounds = new Map<number, Round>()
  #begun = 0
  /** One round of each at a time, whichever workers want to know. */
  readonly #reports: { readonly [About in Topic]: () => Promise<Report[]> } = {
    metrics: sharedAnswer(() => this.#collect('metrics')),
    lines: sharedAnswer(() => this.#collect('lines')),
  }

  /** Gives a new worker its number, and answers what it asks until it ends. */
  add(worker: Worker): number {
    const taken = new Set(this.#numbers.values())
    let number = 1
    while (taken.has(number)) number++
    this.#numbers.set(worker, number)
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'ready') this.#ready.add(worker)
      else if (message.kind === 'ask') void this.#answer(worker, message.ask, message.about)
      else if (message.kind === 'tells') this.#note(worker, message.round, message.figures)
    })
    worker.once('exit', () => {
      this.#numbers.delete(worker)
      this.#ready.delete(worker)
      for (const round of this.#rounds.values()) this.#strike(round, worker)
    })
    return number
  }

  async #answer(asker: Worker, ask: number, about: Topic): Promise<void> {
    const reports = await this.#reports[about]()
    tellWorker(asker, { kind: 'told', ask, reports })
  }

  async #collect(about: Topic): Promise<Report[]> {
    const number = this.#begun++
    const workers = [...this.#ready].map((worker) => ({
      worker,
      number: this.#numbers.get(worker) ?? 0,
      pid: worker.process.pid ?? 0,
    }))
    const { promise, resolve } = Promise.withResolvers<void>()
    const told = new Map<Worker, Figures[Topic]>()
    const round: Round = { asked: new Set(this.#ready), told, end: resolve }
    this.#rounds.set(number, round)
    for (const { worker } of workers) {
      if (worker.isConnected()) tellWorker(worker, { kind: 'tell', round: number, about })
      else this.#strike(round, worker)
    }
    const late = setTimeout(resolve, ANSWERS_WITHIN_MS)
    await promise
    clearTimeout(late)
    this.#rounds.delete(number)
    return workers
      .map(({ worker, number, pid }) => ({ worker: number, pid, figures: told.get(worker) ?? null }))
      .sort((one, other) => one.worker - other.worker)
  }

  #note(worker: Worker, number: number, figures: Figures[Topic]): void {
    const round = this.#rounds.get(number)
    if (!round?.asked.has(worker)) return
    round.told.set(worker, figures)
    this.#strike(round, worker)
  }

  /** Nothing more is expected of this one. */
  #strike(round: Round, worker: Worker): void {
    round.asked.delete(worker)
    if (round.asked.size === 0) round.end()
  }
}
