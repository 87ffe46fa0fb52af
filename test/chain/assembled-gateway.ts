import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { assemble } from '../../examples/gateway/app.ts'
import { Readiness } from '../../examples/gateway/serving/readiness.ts'
import { openLimitStores } from '../../examples/gateway/stores/limit-stores.ts'
import { openDurableStores } from '../../examples/gateway/stores/stores.ts'
import { loadConfig } from '../../lib/core/config/index.ts'
import type { CallLogEntry } from '../../lib/middleware/call-log/index.ts'
import { recordingLogger } from '../support/app-server.ts'
import type { CleanUp } from '../support/clean-up.ts'
import type { Endpoint } from '../support/endpoints.ts'
import type { ScriptedUpstream } from '../support/scripted-upstream.ts'
import type { Caller } from './refusals.ts'

/** The amount that every call here is held for and costs. */
export const PRICE = '0.01'

/** The protocols of its lines. Each has a model named after it. */
export const PROTOCOLS = ['openai', 'anthropic', 'ark'] as const

/** The assembled gateway, asked over one endpoint. */
export interface AssembledGateway {
  /** Takes the ledger away: nothing can be spent or held until the function that it returns is called. */
  takeLedgerAway(): () => void
  /** Sends the smallest request of the endpoint, for the model on the line of a protocol. */
  send(headers: Readonly<Record<string, string>>, protocol?: string): Promise<Response>
  /** The log entry of an answer; waits for it. */
  entryOf(response: Response): Promise<CallLogEntry>
}

/** The headers of a caller, by its place. */
export const callerAt = (at: number) => ({ authorization: `Bearer sk-caller-${at}` })

/**
 * Starts it, with one line for each protocol, and a model of the endpoint's kind on each.
 *
 * @param callers each has an account and a key of its own.
 */
export async function startAssembled(
  cleanUp: CleanUp,
  endpoint: Endpoint,
  upstream: ScriptedUpstream,
  callers: readonly Caller[],
): Promise<AssembledGateway> {
  const logger = recordingLogger()
  const config = loadConfig({
    accounts: callers.map(({ account }, at) => ({ id: `account-${at}`, ...account })),
    keys: callers.map(({ key }, at) => ({
      ...{ id: `key-${at}`, account: `account-${at}`, secret: `sk-caller-${at}` },
      ...key,
    })),
    models: PROTOCOLS.map((id) => ({ id, kind: endpoint.kind, price: { perRequest: PRICE } })),
    lines: PROTOCOLS.map((protocol) => ({
      ...{ id: `line-${protocol}`, provider: 'provider', protocol },
      baseUrl: upstream.url + (protocol === 'ark' ? '/api/v3' : '/v1'),
      models: { [protocol]: 'upstream-model' },
    })),
    passThrough: endpoint.unread
      ? [{ path: endpoint.path, lines: [`line-${endpoint.protocol}`], price: { perRequest: PRICE } }]
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
  cleanUp.after(async () => {
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
    send(headers, protocol = endpoint.protocol) {
      const { method, body, headers: own } = endpoint.request(protocol)
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
