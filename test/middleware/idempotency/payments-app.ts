import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type RequestHandler } from 'express'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type IdempotencyOptions, idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { type LoggedLine, recordingLogger, serveApp } from '../../support/app-server.ts'

/** A payments API that runs a payment once for each key. */
export interface Payments {
  readonly runs: number
  readonly logged: readonly LoggedLine[]
  pay(
    key: string,
    members?: { headers?: Record<string, string>; body?: string; signal?: AbortSignal },
  ): Promise<Response>
}

export async function payments(
  t: TestContext,
  handler: RequestHandler,
  options: IdempotencyOptions = {},
  around: { before?: RequestHandler[]; behind?: RequestHandler[] } = {},
): Promise<Payments> {
  const logger = recordingLogger()
  let runs = 0
  const app = await serveApp((app) => {
    app.use(...(around.before ?? []), express.json())
    app.use(idempotency({ replay: true, logger, ...options }), ...(around.behind ?? []))
    app.post('/payments', (req, res, next) => {
      runs++
      return handler(req, res, next)
    })
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(app.close)
  return {
    get runs() {
      return runs
    },
    logged: logger.lines,
    pay: (key, { headers = {}, body = '{"amount":5}', signal } = {}) =>
      fetch(`${app.url}/payments`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
        body,
        signal: signal ?? null,
        redirect: 'manual',
      }),
  }
}

/** Repeats a request until the answer no longer says that the first one still runs. */
export async function untilAnswered(ask: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const res = await ask()
    if (res.status !== 409 || res.headers.get('x-should-retry') === 'false') return res
    await res.body?.cancel()
    await sleep(10)
  }
}
