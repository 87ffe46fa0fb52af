import type { RequestHandler } from 'express'
import type { Call, CallOutcome } from '../../../lib/core/call/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type AppServer, eventually, serveApp } from '../../support/app-server.ts'

/** A request without a body, byte for byte. */
export const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

/** The outcome of a call whose caller left. */
export const LEFT: CallOutcome = { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }

/** An app that records how its calls ended. */
export interface ObservedApp extends AppServer {
  /** Answers every request. */
  handler: RequestHandler
  /** The events in order: `left`, and what was given back. */
  readonly happened: string[]
  readonly calls: Call[]
  /** Waits until every call has ended, and there was one. */
  ended(): Promise<void>
  /** Forgets what was. */
  reset(): void
}

/** Serves an app whose every call notes `notes` in `happened`, the last one first, when it gives back. */
export async function serveObserved(notes: readonly string[]): Promise<ObservedApp> {
  const happened: string[] = []
  const calls: Call[] = []
  const onBegin = (call: Call): void => {
    calls.push(call)
    for (const note of notes) call.onEnd(note, () => void happened.push(note))
    call.onLeave(() => void happened.push('left'))
  }
  const server = await serveApp((app) => {
    app.use(beginCall({ onBegin, logger: { info() {}, warn() {}, error() {} } }))
    app.use((req, res, next) => observed.handler(req, res, next))
    app.use(errorEnvelope())
  })
  const observed: ObservedApp = {
    ...server,
    handler: (_req, _res, next) => next(),
    happened,
    calls,
    ended: () =>
      eventually(() => calls.length > 0 && calls.every((call) => call.ended), 'the end of the call'),
    reset() {
      happened.length = 0
      calls.length = 0
    },
  }
  return observed
}

/** Waits a few turns more: what would happen twice would have by then. */
export async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}
