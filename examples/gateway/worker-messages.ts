import type { AddressInfo } from 'node:net'
import type { Demand, Verdict } from 'express-model-gateway/rate-limit'

/** What the primary process says to a worker. */
export type ToWorker =
  /** Serve, on this port. */
  | { readonly kind: 'start'; readonly source: object; readonly port: number }
  | { readonly kind: 'reload'; readonly source: object }
  /** Another one has taken your place. */
  | { readonly kind: 'retire' }
  /** All of us end. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'verdicts'; readonly verdicts: readonly LimitAnswer[] }

/** What a worker says to the primary process. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly address: AddressInfo }
  /** Somebody wants this process to end. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'limits'; readonly asks: readonly LimitAsk[] }

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
