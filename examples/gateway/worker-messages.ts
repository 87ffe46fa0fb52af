import type { Worker } from 'node:cluster'
import type { AddressInfo } from 'node:net'
import type { Demand, Verdict } from 'express-model-gateway/rate-limit'
import type { LineFigures } from 'express-model-gateway/route'

/** What the primary process says to a worker. */
export type ToWorker =
  /** Serve, on this port, under this number. */
  | { readonly kind: 'start'; readonly source: object; readonly port: number; readonly worker: number }
  | { readonly kind: 'reload'; readonly source: object }
  /** Another one has taken your place. */
  | { readonly kind: 'retire' }
  /** All of us end. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'verdicts'; readonly verdicts: readonly LimitAnswer[] }
  /** One of you is asked how all do: say how you do. */
  | { readonly kind: 'tell'; readonly round: number; readonly about: Topic }
  /** How all do, whom you have asked for. */
  | { readonly kind: 'told'; readonly ask: number; readonly reports: readonly Report[] }

/** What a worker says to the primary process. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly address: AddressInfo }
  /** Somebody wants this process to end. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'limits'; readonly asks: readonly LimitAsk[] }
  /** How do all of us do? */
  | { readonly kind: 'ask'; readonly ask: number; readonly about: Topic }
  /** So do I. */
  | { readonly kind: 'tells'; readonly round: number; readonly figures: Figures[Topic] }

/** One operation of the limits that all workers share. */
export type LimitAsk =
  | { readonly to: 'admit'; readonly number: number; readonly demand: Demand }
  | { readonly to: 'hold' | 'release'; readonly demand: Demand }
  | { readonly to: 'ended'; readonly sender: string }

/** The verdict on the ask of that number. */
export interface LimitAnswer {
  readonly ask: number
  readonly verdict: Verdict
}

/** What a worker can tell of itself. */
export interface Figures {
  /** A scrape, in the text format of Prometheus. */
  readonly metrics: string
  /** Each line of its catalogue. */
  readonly lines: readonly LineFigures[]
}

export type Topic = keyof Figures

/** What one of the workers told of itself. */
export interface Report<About extends Topic = Topic> {
  /** From 1, and as small as can be: that of a worker that has ended is given again. */
  readonly worker: number
  readonly pid: number
  /** null where it did not answer in time. */
  readonly figures: Figures[About] | null
}

/** Says something to a worker. One that has just ended says so itself: without a callback it would end this process, too. */
export function tellWorker(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}
