import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import express, { type Request, type RequestHandler, type Response } from 'express'
import { type Call, callOf } from '../../../lib/core/call/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type RateLimitOptions, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { type ErrorEnvelope, envelopeIn } from '../../support/answer-bodies.ts'
import { type LoggedLine, recordingLogger } from '../../support/app-server.ts'
import { listen } from '../../support/gateway.ts'

/** An app with one limited route for any path; who calls stands in `x-key` and `x-account`. */
export interface LimitedApp {
  readonly url: string
  readonly server: Server
  /** How many requests came through the limits. */
  readonly handled: number
  /** Every call, in the order they came. */
  readonly calls: Call[]
  readonly logged: readonly LoggedLine[]
  ask(members?: {
    key?: string
    account?: string
    tokens?: number
    path?: string
    signal?: AbortSignal
  }): Promise<Answer>
}

/** The answer as a caller saw it. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  /** The error body; fails when there is another. */
  readonly envelope: ErrorEnvelope
}

export interface LimitedAppOptions extends RateLimitOptions {
  /** Limits of every key and account. Default to none. */
  keyRpm?: number
  keyTpm?: number
  rpm?: number
  tpm?: number
  concurrency?: number
  /** The handler behind the limits. Answers at once by default. */
  handler?: RequestHandler
  /** The middleware between the limits and the handler. */
  later?: RequestHandler
}

/** Starts the app; closed at the end of the test. */
export async function limitedApp(t: TestContext, options: LimitedAppOptions = {}): Promise<LimitedApp> {
  const { keyRpm, keyTpm, rpm, tpm, concurrency, handler, later, ...limits } = options
  const { lines, ...logger } = recordingLogger()
  const calls: Call[] = []
  let handled = 0
  const app = express()
  app.use(beginCall({ logger, onBegin: (call) => void calls.push(call) }))
  app.use((req, _res, next) => {
    callOf(req).principal = {
      keyId: String(req.headers['x-key'] ?? 'k1'),
      accountId: String(req.headers['x-account'] ?? 'a1'),
      keyLimits: { rpm: keyRpm ?? null, tpm: keyTpm ?? null },
      accountLimits: { rpm: rpm ?? null, tpm: tpm ?? null, concurrency: concurrency ?? null },
      lineRegions: undefined,
      mayUseModel: () => true,
    }
    next()
  })
  app.use(rateLimit({ tokens: (req) => Number(req.headers['x-tokens'] ?? 0), ...limits }))
  if (later) app.use(later)
  app.use((req: Request, res: Response, next) => {
    handled++
    if (handler) handler(req, res, next)
    else res.json({ ok: true })
  })
  app.use(errorEnvelope())
  const server = await listen(app)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url,
    server,
    get handled() {
      return handled
    },
    calls,
    logged: lines,
    async ask({ key = 'k1', account = 'a1', tokens = 0, path = '/v1/chat/completions', signal } = {}) {
      const headers = { 'x-key': key, 'x-account': account, 'x-tokens': `${tokens}` }
      const response = await fetch(url + path, { method: 'POST', headers, signal: signal ?? null })
      const body: unknown = await response.json()
      return {
        status: response.status,
        headers: response.headers,
        body,
        get envelope() {
          return envelopeIn(body)
        },
      }
    },
  }
}
