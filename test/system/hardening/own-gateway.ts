import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach } from 'node:test'
import { assemble } from '../../../examples/gateway/app.ts'
import { Readiness } from '../../../examples/gateway/serving/readiness.ts'
import { openLimitStores } from '../../../examples/gateway/stores/limit-stores.ts'
import { openDurableStores } from '../../../examples/gateway/stores/stores.ts'
import { loadConfig } from '../../support/any-config.ts'

import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chatAnswer,
  messageAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { ADMIN_TOKEN, KEY } from './guarded-gateway.ts'

/** The assembled gateway in this process, so that a test can see what a request did to it. */
export interface OwnGateway {
  readonly upstream: ScriptedUpstream
  /** Sends JSON text with the key, or the token, that the path wants; resolves with the status. */
  ask(method: string, path: string, body?: string, headers?: Record<string, string>): Promise<number>
}

/** Awaited in the body of a test file; behind each test nothing unforeseen may have been logged. */
export async function ownGateway(): Promise<OwnGateway> {
  const logger = recordingLogger()
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res, { path }) =>
    path.endsWith('/messages') ? messageAnswer(res) : chatAnswer(res),
  )
  cleanUp.after(() => upstream.close())
  const line = { id: 'l', provider: 'p', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } }
  const config = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k', account: 'acme', secret: KEY }],
    models: [{ id: 'chat', kind: 'chat' }],
    lines: ['openai', 'anthropic'].map((protocol) => ({ ...line, id: protocol, protocol })),
  })
  const stores = await openDurableStores('memory:', config, logger)
  const gateway = assemble({
    config,
    stores: { ...stores, limits: (await openLimitStores(undefined, logger)).limits },
    logger,
    readiness: new Readiness(async () => {}),
    adminToken: ADMIN_TOKEN,
  })
  cleanUp.after(() => gateway.close().then(stores.close))
  const server = createServer(gateway.app)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  cleanUp.after(() => server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  afterEach(() => {
    const unforeseen = logger.lines.filter(({ level }) => level === 'error')
    assert.deepEqual(unforeseen, [], 'nothing unforeseen')
  })
  return {
    upstream,
    async ask(method, path, body, headers) {
      const token = path.startsWith('/admin') ? ADMIN_TOKEN : KEY
      const response = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body }),
      })
      await response.text()
      return response.status
    },
  }
}

/** The endpoints of the admin API that take a body. */
export const ADMIN_BODIES: readonly [method: string, path: string, body: object][] = [
  ['POST', '/admin/accounts', { id: 'new', limits: { rpm: 1 } }],
  ['PATCH', '/admin/accounts/acme', { limits: { rpm: 1 } }],
  ['POST', '/admin/accounts/acme/deposits', { amount: '1', reference: 'r' }],
]
