import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import express, { type Express } from 'express'
import type { Gateway } from 'express-model-gateway/gateway'
import { WebSocket } from 'ws'
import { createGateway } from '../support/any-config.ts'
import { recordingLogger } from '../support/app-server.ts'
import { webSocketUpstream } from '../support/websocket-upstream.ts'

/** A gateway whose callers may open sessions, and an upstream that sends back what it receives. */
async function realtimeGateway(t: TestContext, outerApp?: Express) {
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
  const options = { databaseUrl: 'memory:', logger: recordingLogger(), env: {}, outerApp }
  const gateway = await createGateway(config, options)
  t.after(() => gateway.close())
  return gateway
}

/** Returns the answer of the other side to a first message, or the status that refuses the session. */
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

/** Mounts the gateway, and returns the path where it is. */
type Mount = (app: Express, gateway: Express) => string

const MOUNTS_OF_APPS: readonly (readonly [where: string, mount: Mount])[] = [
  ['at its root', at('/', '')],
  ['under a path', at('/llm')],
  ['under a path with a slash at its end', at('/llm/', '/llm')],
  ['under one of several paths', at(['/models', '/llm'], '/llm')],
  ['under a path in other letters', at('/llm', '/LLM')],
  ['under a path with a parameter', at('/:tenant', '/acme')],
  ['under a path that begins as one of the gateway', at('/v1')],
  ['under a path that ends as one of the gateway begins', at('/api/v1')],
  ['under a path of Azure', at('/openai')],
  ['under a path that looks like one of the gateway', at('/v1x')],
  [
    'under the path of an app in an app',
    (app, gateway) => {
      app.use('/in', express().use('/llm', gateway))
      return '/in/llm'
    },
  ],
]

const MOUNTS_OF_ROUTERS: readonly (readonly [where: string, mount: Mount])[] = [
  [
    'under the path of a router',
    (app, gateway) => {
      app.use(express.Router().use('/v1/router', gateway))
      return '/v1/router'
    },
  ],
  [
    'under the path of a router in a router in an app',
    (app, gateway) => {
      const inner = express().use('/b', express.Router().use(express.Router().use('/:name', gateway)))
      app.use('/a', inner)
      return '/a/b/router'
    },
  ],
  [
    'in an app that was mounted before',
    (app, gateway) => {
      const inner = express()
      app.use('/in', inner)
      inner.use('/llm', gateway)
      return '/in/llm'
    },
  ],
]

function at(mountPath: string | string[], path = String(mountPath)): Mount {
  return (app, gateway) => {
    app.use(mountPath, gateway)
    return path
  }
}

async function serve(t: TestContext, app: Express, gateway: Gateway): Promise<string> {
  const server = app.listen(0, '127.0.0.1').on('upgrade', gateway.upgrade)
  await once(server, 'listening')
  t.after(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function assertServed(host: string, path: string): Promise<void> {
  assert.equal((await fetch(`http://${host}${path}/healthz`)).status, 200)
  const url = `ws://${host}${path}/v1/realtime?model=m`
  assert.equal(await said(url), 'hello')
  assert.equal(await said(url, 'sk-none'), 401)
  assert.equal(await said(url.replace('realtime', 'none')), 404)
}

describe('WebSockets of a gateway in another app', () => {
  for (const [where, mount] of MOUNTS_OF_APPS)
    it(`have the paths of its other requests: ${where}`, async (t) => {
      const app = express()
      const gateway = await realtimeGateway(t)
      const path = mount(app, gateway)
      await assertServed(await serve(t, app, gateway), path)
    })

  for (const [where, mount] of MOUNTS_OF_ROUTERS)
    it(`have the paths of its other requests if the gateway is given the app: ${where}`, async (t) => {
      const app = express()
      const gateway = await realtimeGateway(t, app)
      const path = mount(app, gateway)
      await assertServed(await serve(t, app, gateway), path)
    })

  it('pass the middlewares of that app, which can refuse them', async (t) => {
    const app = express()
    const gateway = await realtimeGateway(t)
    app.use((req, res, next) => {
      if (req.query.ticket === 'right') next()
      else res.sendStatus(403)
    })
    app.use('/llm', gateway)
    const url = `ws://${await serve(t, app, gateway)}/llm/v1/realtime?model=m`
    assert.equal(await said(url), 403)
    assert.equal(await said(`${url}&ticket=right`), 'hello')
  })

  it('are refused where that app has no such path', async (t) => {
    const app = express()
    const gateway = await realtimeGateway(t)
    app.use('/llm', gateway)
    assert.equal(await said(`ws://${await serve(t, app, gateway)}/v1/realtime?model=m`), 404)
  })
})
