import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import {
  authenticate,
  beginCall,
  callOf,
  idempotency,
  memoryKeyDirectory,
  rateLimit,
} from 'express-model-gateway'

const keys = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [{ id: 'k1', account: 'acme', secret: 'sk-1' }],
})

/** Middlewares of ours that any app can use, and an error handler that is not ours. */
export interface Shop {
  /** In front of the parser of bodies. */
  readonly guards: readonly RequestHandler[]
  /** Behind it. */
  readonly once: RequestHandler
  readonly order: RequestHandler
  readonly fail: ErrorRequestHandler
  readonly placed: unknown[]
}

export function shop(): Shop {
  const placed: unknown[] = []
  return {
    placed,
    guards: [
      beginCall(),
      authenticate({ keys }),
      rateLimit({
        headers: 'ietf',
        levels: [{ name: 'account', by: (_req, call) => call.principal?.accountId, rpm: 4 }],
      }),
    ],
    once: idempotency(),
    order: (req: Request, res: Response) => {
      placed.push(req.body)
      res.status(201).json({ id: placed.length, call: callOf(req).id, text: 'x'.repeat(3000) })
    },
    fail: (
      error: Error & { status?: number; code?: string; headers?: Record<string, string> },
      _req,
      res,
      _next,
    ) => {
      res.status(error.status ?? 500)
      if (error.headers) res.set(error.headers)
      res.json({ own: error.code ?? error.message })
    },
  }
}

/** The answer to a caller about an order. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: { id?: number; call?: string; own?: string }
}

export async function placeOrder(
  url: string,
  members: { key?: string; once?: string; item?: string } = {},
): Promise<Answer> {
  const { key = 'sk-1', once, item = 'pen' } = members
  const res = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(once !== undefined && { 'idempotency-key': once }),
    },
    body: JSON.stringify({ item }),
  })
  return { status: res.status, headers: res.headers, body: (await res.json()) as Answer['body'] }
}
