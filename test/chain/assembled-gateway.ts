import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assemble } from '../../examples/gateway/app.ts'
import { Readiness } from '../../examples/gateway/serving/readiness.ts'
import { openLimitStores } from '../../examples/gateway/stores/limit-stores.ts'
import { openDurableStores } from '../../examples/gateway/stores/stores.ts'
import { loadConfig } from '../../lib/core/config/index.ts'
import type { ProtocolName } from '../../lib/core/protocols/index.ts'
import type { CallLogEntry } from '../../lib/middleware/call-log/index.ts'
import { recordingLogger } from '../support/app-server.ts'
import type { Endpoint } from '../support/endpoints.ts'
import type { ScriptedUpstream } from '../support/scripted-upstream.ts'
import type { Caller } from './refusals.ts'

/** The amount that every call here is held for and costs. */
export const PRICE = '0.01'

/** The assembled gateway, asked over one endpoint. */
export interface AssembledGateway {
  /** Takes the ledger away: nothing can be spent or held until the function that it returns is called. */
  takeLedgerAway(): () => void
  /** Sends the smallest request of the endpoint. */
  send(headers?: Readonly<Record<string, string>>): Promise<Response>
  /** The log entry of an answer; waits for it. */
  entryOf(response: Response): Promise<CallLogEntry>
}

/** The setting of an endpoint. */
export interface AssembledOptions {
  readonly endpoint: Endpoint
  readonly upstream: ScriptedUpstream
  readonly caller?: Caller
  /** The protocol of the one line. Defaults to the protocol of the endpoint. */
  readonly lineProtocol?: ProtocolName
}

/** Starts it, with one model of the endpoint's kind on one line; closed at the end of the test. */
export async function startAssembled(
  t: TestContext,
  { endpoint, upstream, caller = {}, lineProtocol = endpoint.protocol }: AssembledOptions,
): Promise<AssembledGateway> {
  const logger = recordingLogger()
  const config = loadConfig({
    accounts: [{ id: 'acme', ...caller.account }],
    keys: [{ id: 'key_acme', account: 'acme', secret: 'sk-caller', ...caller.key }],
    models: [{ id: 'model', kind: endpoint.kind, price: { perRequest: PRICE } }],
    lines: [
      {
        id: 'line',
        provider: 'provider',
        protocol: lineProtocol,
        baseUrl: upstream.url + (lineProtocol === 'ark' ? '/api/v3' : '/v1'),
        models: { model: 'upstream-model' },
      },
    ],
    passThrough: endpoint.unread
      ? [{ path: endpoint.path, lines: ['line'], price: { perRequest: PRICE } }]
      : [],
  })
  const durable = await openDurableStores('memory:', config, logger)
  const { limits } = await openLimitStores(undefined, logger)
  const gateway = assemble({
    config,
    stores: { ...durable, limits },
    logger,
    readiness: new Readiness(durable.ping),
    adminToken: undefined,
  })
  const server = createServer(gateway.app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await gateway.close()
    await durable.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${endpoint.path}`
  return {
    takeLedgerAway() {
      const { ledger, tasks } = durable
      const [change, intend] = [ledger.change, tasks.intend]
      ledger.change = away
      tasks.intend = away
      return () => Object.assign(ledger, { change }) && Object.assign(tasks, { intend })
    },
    send(headers = { authorization: 'Bearer sk-caller' }) {
      const { method, body, headers: own } = endpoint.request('model')
      return fetch(url, { method, body, headers: { ...own, ...headers } })
    },
    async entryOf(response) {
      const id = response.headers.get('x-request-id') ?? ''
      for (let tries = 0; tries < 1000; tries++) {
        const entry = await durable.calls.find(id)
        if (entry) return entry
        await sleep(5)
      }
      throw new Error(`no call-log entry for ${id}`)
    },
  }
}

async function away(): Promise<never> {
  throw new Error('away')
}
