import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import express, { type Response } from 'express'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { chatBody, listen } from '../../support/gateway.ts'
import { catalog } from '../../support/one-line-catalog.ts'
import { until } from '../../support/until.ts'

it('a handler behind readRequest that goes on without its caller is not run a second time', async (t) => {
  const running: Response[] = []
  const app = express()
  app.post(
    '/v1/chat/completions',
    readRequest({ catalog }),
    idempotency(),
    (_req, res) => void running.push(res),
  )
  app.use(errorEnvelope())
  const server = await listen(app)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const ask = (signal: AbortSignal | null = null) =>
    fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: JSON.stringify(chatBody()),
      signal,
    })

  const leaving = new AbortController()
  const first = ask(leaving.signal).catch(() => undefined)
  await until(() => running.length === 1)
  leaving.abort()
  await first
  await until(() => running[0]?.destroyed === true)

  const second = await ask()
  assert.equal(second.status, 409)
  assert.equal((await envelopeOf(second)).error.code, 'idempotency_key_in_use')
  assert.equal(running.length, 1)
})
