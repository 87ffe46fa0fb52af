import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { ErrorRequestHandler, RequestHandler } from 'express'
import { WebSocket } from 'ws'
import { callOf } from '../../../../lib/core/call/index.ts'
import { loadConfig } from '../../../../lib/core/config/index.ts'
import { type ErrorCode, GatewayError } from '../../../../lib/core/errors/index.ts'
import { upgradeHandler } from '../../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../../lib/middleware/error-envelope/index.ts'
import { type ForwardOptions, forward } from '../../../../lib/middleware/forward/index.ts'
import { serveChain } from '../../../support/chain-server.ts'
import { KEY } from '../../../support/gateway.ts'

interface Chain {
  rule?: Partial<ForwardOptions['rule']>
  before?: readonly RequestHandler[]
}

/** A chain without billing, whose keys a test can end. */
export async function chain(t: TestContext, url: string, { rule, before = [] }: Chain = {}) {
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k', account: 'acme', secret: KEY, tags: { of: 'key' } }],
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { m: 'm' } }],
  })
  const ends: ((error: GatewayError) => void)[] = []
  const failed: unknown[] = []
  let upgrades: ReturnType<typeof upgradeHandler> | undefined
  const server = await serveChain(config, (app, { lines }) => {
    upgrades = upgradeHandler(app)
    app.use((req, _res, next) => {
      callOf(req).keyWatch = { follow: (_call, end) => void ends.push(end) }
      next()
    })
    app.all(
      '/v1/*rest',
      ...before,
      forward({ catalog: config.catalog, rule: { lines: ['l'], ...rule }, lines }),
    )
    app.use(((error, _req, _res, next) => {
      failed.push(error)
      next(error)
    }) as ErrorRequestHandler)
    app.use(errorEnvelope())
  })
  server.server.on('upgrade', (...args) => upgrades?.handle(...args))
  t.after(async () => {
    upgrades?.cutOff()
    await server.close()
  })
  const headers = { authorization: `Bearer ${KEY}` }
  const ask = (init: RequestInit = {}) =>
    fetch(`${server.url}/v1/files`, { ...init, headers: { ...headers, ...init.headers } })
  const connect = () => {
    const { port } = server.server.address() as AddressInfo
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime`, { headers })
    socket.on('error', () => {})
    return socket
  }
  return {
    ...server,
    ask,
    connect,
    failed,
    end: (code: ErrorCode) => {
      for (const end of ends) end(new GatewayError(code))
    },
  }
}
