import type { Worker } from 'node:cluster'
import type { AddressInfo } from 'node:net'
import type { Demand, Verdict } from 'express-model-gateway/rate-limit'
import type { LineFigures } from 'express-model-gateway/route'
import type { SentConfig } from '../config/served-config.ts'

/** Where a process listens. */
export interface Addresses {
  readonly callers: AddressInfo
  /** Absent if operators have no port of their own. */
  readonly admin?: AddressInfo
}

/** A config without its accounts and keys. */
export type RestOfConfig = Omit<SentConfig, 'accounts' | 'keys'>

/** Messages from the primary process to a worker. */
export type ToWorker =
  /** Accounts or keys of the config that the next message is about. They come page by page, so that calls run in between. */
  | {
      readonly kind: 'page'
      readonly of: 'accounts' | 'keys'
      readonly last: string
      readonly json: string
    }
  /** Start to serve on this port, with this number. */
  | {
      readonly kind: 'start'
      readonly config: RestOfConfig
      readonly port: number
      /** Undefined: operators have no port of their own. */
      readonly adminPort: number | undefined
      readonly worker: number
      readonly logsForAll: boolean
    }
  /** Take over this config; one worker logs what is odd in it. */
  | { readonly kind: 'reload'; readonly config: RestOfConfig; readonly logsForAll: boolean }
  /** Stop: another worker has replaced this one. */
  | { readonly kind: 'retire' }
  /** Stop: all workers stop. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'verdicts'; readonly verdicts: readonly LimitAnswer[] }
  /** Report your figures. */
  | { readonly kind: 'report'; readonly round: number; readonly about: Topic }
  /** The figures of all workers, in answer to `ask`. */
  | { readonly kind: 'reports'; readonly ask: number; readonly reports: readonly Report[] }

/** Messages from a worker to the primary process. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly addresses: Addresses }
  /** This worker got a SIGTERM and shall be replaced. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'limits'; readonly asks: readonly LimitAsk[] }
  /** Send me the figures of all workers. */
  | { readonly kind: 'ask'; readonly ask: number; readonly about: Topic }
  /** The figures of this worker, in answer to `report`. */
  | { readonly kind: 'figures'; readonly round: number; readonly figures: Figures[Topic] }

/** One operation on the limits that all workers share. */
export type LimitAsk =
  | { readonly to: 'admit' | 'peek'; readonly number: number; readonly demand: Demand }
  /** Gives back the slots of the demand with this id. */
  | { readonly to: 'release'; readonly number: number; readonly id: string }
  | { readonly to: 'hold'; readonly demand: Demand }
  | {
      readonly to: 'book'
      readonly number: number
      readonly key: string
      readonly points: number
      readonly windowMs: number
    }

/** The verdict on a demand, or without one the confirmation of another operation. */
export interface LimitAnswer {
  readonly ask: number
  readonly verdict?: Verdict
}

export interface Figures {
  /** The metrics in Prometheus's text format. */
  readonly metrics: string
  /** The figures of each line of its catalogue. */
  readonly lines: readonly LineFigures[]
}

export type Topic = keyof Figures

export interface Report<About extends Topic = Topic> {
  /** The number of the worker, from 1. The number of a worker that has ended is used again. */
  readonly worker: number
  readonly pid: number
  /** null if the worker did not answer in time. */
  readonly figures: Figures[About] | null
}

/** Sends a message to a worker. The callback ignores the error of a worker that has just ended, which reports its end itself. */
export function sendToWorker(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** Sends the pages of a config to a worker. The message that follows has the rest. */
export function sendPages(worker: Worker, { accounts, keys }: SentConfig): void {
  for (const [of, pages] of Object.entries({ accounts, keys }) as ['accounts' | 'keys', typeof keys][])
    for (const { last, json } of pages)
      sendToWorker(worker, { kind: 'page', of, last, json: new TextDecoder().decode(json) })
}
