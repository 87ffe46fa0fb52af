import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import express from 'express'
import { createGateway } from 'express-model-gateway/gateway'
import { WebSocket } from 'ws'
import { behindMounts } from '../../examples/gateway/behind-mounts.ts'
import { recordingLogger, serveApp } from '../support/app-server.ts'
import { webSocketUpstream } from '../support/websocket-upstream.ts'

/** A gateway whose callers may open sessions, and an upstream that says back what it is told. */
async function realtimeGateway(t: TestContext) {
  const upstream = await webSocketUpstream(t)
  const config = {
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k', account: 'acme', secret: 'sk-1' }],
    models: [{ id: 'm', kind: 'chat' }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { m: 'up' } },
    ],
    passThrough: [{ path: '/v1/realtime', lines: ['l'] }],
  }
  const gateway = await createGateway(config, { databaseUrl: 'memory:', logger: recordingLogger(), env: {} })
  t.after(() => gateway.close())
  return gateway
}

/** Returns what the other side answers to a first message, or the status that refuses the session. */
function said(url: string, secret = 'sk-1'): Promise<string | number | undefined> {
  const session = new WebSocket(url, { headers: { authorization: `Bearer ${secret}` } })
  return new Promise((resolve, reject) => {
    session.on('open', () => session.send('hello'))
    session.on('message', (data) => {
      resolve(String(data))
      session.close()
    })
    session.on('unexpected-response', (req, res) => {
      resolve(res.statusCode)
      req.destroy()
    })
    session.on('error', reject)
  })
}

describe('WebSockets of a gateway in another app', () => {
  for (const [what, mount, path] of [
    ['at its root', '/', ''],
    ['under a path', '/llm', '/llm'],
    ['under the path of an app in an app', '/in/llm', '/in/llm'],
    ['under a path with a slash at its end', '/llm/', '/llm'],
    ['under one of several paths', ['/models', '/llm'], '/llm'],
    ['under a path in other letters', '/llm', '/LLM'],
    ['under a path with a parameter', '/:tenant', '/acme'],
    ['under a path that begins as one of the gateway', '/v1', '/v1'],
    ['under a path that ends as one of the gateway begins', '/api/v1', '/api/v1'],
    ['under a path of Azure', '/openai', '/openai'],
    ['under the path of a router', '/router', '/router'],
    ['under the path of a router in a router in an app', '/a/router', '/a/b/router'],
    ['under a path that looks like one of the gateway', '/v1x', '/v1x'],
  ] as const)
    it(`have the paths of its other requests: ${what}`, async (t) => {
      const gateway = await realtimeGateway(t)
      const server = await serveApp((app) => {
        const inner = express()
        if (mount === '/in/llm') app.use('/in', inner.use('/llm', gateway))
        else if (mount === '/router') app.use(express.Router().use(mount, gateway))
        else if (mount === '/a/router')
          app.use('/a', inner.use('/b', express.Router().use(express.Router().use('/router', gateway))))
        else app.use(typeof mount === 'string' ? mount : [...mount], gateway)
      })
      t.after(() => server.close())
      server.server.on('upgrade', gateway.upgrade)
      assert.equal((await fetch(`${server.url}${path}/healthz`)).status, 200)
      const url = `${server.url.replace('http', 'ws')}${path}/v1/realtime?model=m`
      assert.equal(await said(url), 'hello')
      assert.equal(await said(url, 'sk-none'), 401)
      assert.equal(await said(url.replace('realtime', 'none')), 404)
    })
})

describe('the path of a mount', () => {
  const rows: [url: string, own: string][] = [
    ['/v1/realtime', '/v1/realtime'],
    ['/v1/a/v1/b?c=/v1/d', '/v1/a/v1/b?c=/v1/d'],
    ['/llm/v1/a/v1/b', '/v1/a/v1/b'],
    ['/llm/api/v3/x?a=/v1/b', '/api/v3/x?a=/v1/b'],
    ['/llm/openai/v1/realtime', '/openai/v1/realtime'],
    ['/llm/v1', '/llm/v1'],
    ['/other?a=/v1/b', '/other?a=/v1/b'],
    ['/v12/x', '/v12/x'],
    ['/', '/'],
  ]
  for (const [url, own] of rows)
    it(`is taken off a WebSocket's: ${url}`, () => {
      const req = Object.assign(new IncomingMessage(new Socket()), { url, originalUrl: undefined })
      behindMounts(express() as never, req, () => {})
      assert.deepEqual([req.url, req.originalUrl], [own, url])
    })
})
