import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { modelRoutes } from '../../../lib/endpoints/models/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { LineRegistry, route } from '../../../lib/middleware/route/index.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { closedPort } from '../../support/scripted-upstream.ts'

/** Each middleware alone: no beginCall before it, no errorEnvelope behind it, Express's own handler answers. */
let behind = 0
const cleanUp = cleaningUp()
beforeEach(() => {
  behind = 0
})

async function alone(path: string, ...handlers: RequestHandler[]): Promise<string> {
  const app = await serveApp((app) => {
    app.all(path, ...handlers, (req, res) => {
      behind++
      res.json({ call: callOf(req).id })
    })
  })
  cleanUp.after(() => app.close())
  return app.url + path
}

const keys = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [
    { id: 'k1', account: 'acme', secret: 'sk-1' },
    { id: 'k2', account: 'acme', secret: 'sk-2', enabled: false },
  ],
})
const catalogWith = (port: number) =>
  loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [],
    models: [
      { id: 'chat', kind: 'chat' },
      { id: 'lonely', kind: 'chat' },
    ],
    lines: [
      {
        id: 'l1',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `http://127.0.0.1:${port}/v1`,
        apiKey: 'k',
        models: { chat: 'm' },
      },
    ],
  }).catalog

function expectHeaders(res: Response, status: number, shouldRetry: string | null): void {
  assert.equal(res.status, status)
  assert.match(res.headers.get('x-request-id') ?? '', /^req_[0-9a-z]{26}$/)
  assert.equal(res.headers.get('x-should-retry'), shouldRetry)
  assert.match(res.headers.get('content-type') ?? '', /html/)
  assert.equal(behind, 0)
}

describe('one middleware in a plain Express app', () => {
  it('authenticate refuses with status and headers, and lets a good key through', async () => {
    const url = await alone('/ask', authenticate({ keys }))
    expectHeaders(await fetch(url), 401, 'false')
    expectHeaders(await fetch(url, { headers: { 'x-api-key': 'sk-2' } }), 403, 'false')
    const res = await fetch(url, { headers: { 'x-api-key': 'sk-1' } })
    assert.equal(res.headers.get('x-request-id'), (await jsonOf<{ call: string }>(res)).call)
    assert.equal(behind, 1)
  })

  it('authenticate carries request-id too on the Anthropic-style path', async () => {
    const res = await fetch(await alone('/v1/messages', authenticate({ keys })))
    assert.equal(res.headers.get('request-id'), res.headers.get('x-request-id'))
    expectHeaders(res, 401, 'false')
  })

  it('readRequest refuses with status and headers, and lets a good body through', async () => {
    const catalog = catalogWith(1)
    const url = await alone(
      '/chat',
      readRequest({ catalog, operation: chatCompletions, bodyLimitBytes: 500 }),
    )
    const post = (body: string) =>
      fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    const chat = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] }
    expectHeaders(await post('{'), 400, 'false')
    expectHeaders(await post('{}'), 400, 'false')
    expectHeaders(await post(JSON.stringify({ ...chat, model: 'none' })), 404, 'false')
    expectHeaders(await post(JSON.stringify({ ...chat, user: 'x'.repeat(1000) })), 413, 'false')
    assert.equal((await post(JSON.stringify(chat))).status, 200)
    assert.equal(behind, 1)
  })

  it('route fails with status and headers', async () => {
    const lines = new LineRegistry()
    const catalog = catalogWith(await closedPort())
    const chain = [readRequest({ catalog, operation: chatCompletions }), route({ catalog, lines })]
    const url = await alone('/chat', ...chain)
    const ask = (model: string) =>
      fetch(url, {
        method: 'POST',
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
        headers: { 'content-type': 'application/json' },
      })
    try {
      expectHeaders(await ask('chat'), 502, 'true')
      expectHeaders(await ask('lonely'), 503, 'false')
    } finally {
      await lines.close()
    }
  })

  it('modelRoutes refuses an unknown model with status and headers', async () => {
    const app = await serveApp((app) => app.use('/v1', modelRoutes({ catalog: catalogWith(1) })))
    cleanUp.after(() => app.close())
    expectHeaders(await fetch(`${app.url}/v1/models/none`), 404, 'false')
    assert.equal((await fetch(`${app.url}/v1/models/chat`)).status, 200)
  })

  it('unknownPath answers not_found', async () => {
    expectHeaders(await fetch(await alone('/x', unknownPath())), 404, null)
  })

  it('beginCall gives a plain handler’s answer its request id', async () => {
    const res = await fetch(await alone('/x', beginCall()))
    assert.equal(res.headers.get('x-request-id'), (await jsonOf<{ call: string }>(res)).call)
  })
})
