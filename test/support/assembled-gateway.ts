import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway, GatewayOptions } from 'express-model-gateway/gateway'
import type { CallLogEntry } from '../../lib/core/call/index.ts'
import { type AnyGateway, createGateway } from './any-config.ts'
import type { CleanUp } from './clean-up.ts'
import { KEY } from './gateway.ts'
import { until } from './until.ts'

/** A line in the log of a gateway. */
export interface LoggedEntry {
  readonly level: string
  readonly message: string
  readonly fields: object
}

/** The assembled gateway in this process, with a database in memory. */
export interface AssembledGateway {
  readonly url: string
  readonly gateway: AnyGateway
  readonly logged: readonly LoggedEntry[]
  /** Sends a request with the test key. */
  send(path: string, body?: unknown, init?: RequestInit): Promise<Response>
  /** Returns the call-log entry of an answer. */
  entryOf(response: Response): Promise<CallLogEntry>
}

export interface AssembledOptions
  extends Pick<GatewayOptions, 'use' | 'strategy' | 'keys' | 'stores' | 'redisUrl'> {
  /** Defaults to a database in memory. */
  readonly databaseUrl?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly adminToken?: string
  readonly webhookAllowPrivate?: boolean
  readonly consoleUrl?: string
  readonly ledgerConfirmMs?: number
  readonly signInProvider?: NonNullable<GatewayOptions['signInProvider']>
}

/** Ends a gateway. By itself it waits for a second for what else might come on its idle connections. */
export function endGateway(gateway: Gateway, server: Server): Promise<void> {
  server.closeIdleConnections()
  return gateway.close()
}

/** Starts the gateway of `examples/gateway` on a free port. The account "acme" has the test key. */
export async function assembledGateway(
  cleanUp: CleanUp,
  config: object,
  options: AssembledOptions = {},
): Promise<AssembledGateway> {
  const logged: LoggedEntry[] = []
  const note = (level: string) => (fields: object, message: string) => {
    logged.push({ level, message, fields })
  }
  const logger = { info: note('info'), warn: note('warn'), error: note('error') }
  const gateway = await createGateway(
    {
      accounts: [{ id: 'acme' }],
      keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
      ...config,
    },
    { databaseUrl: 'memory:', logger, env: {}, ...options },
  )
  const server = gateway.listen(0, '127.0.0.1')
  cleanUp.after(() => endGateway(gateway, server))
  await until(() => server.listening, 'the gateway listens')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const send = (path: string, body?: unknown, init: RequestInit = {}): Promise<Response> =>
    fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...init,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...init.headers },
    })
  return {
    url,
    gateway,
    logged,
    send,
    async entryOf(response) {
      const id = response.headers.get('x-request-id')
      const deadline = performance.now() + 5000
      for (;;) {
        const found = await send(`/v1/calls/${id}`)
        if (found.status === 200) return (await found.json()) as CallLogEntry
        await found.arrayBuffer()
        // Look-ups have a limit.
        await delay(25)
        if (performance.now() > deadline) throw new Error(`there is no entry of ${id}: ${found.status}`)
      }
    },
  }
}
