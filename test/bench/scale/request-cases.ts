import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Pool } from 'undici'
import {
  authenticate,
  beginCall,
  billingGuard,
  CallLogWriter,
  callLog,
  LeasePool,
  MemoryCallStore,
  MemoryLedger,
  memoryKeyDirectory,
  readRequest,
  route,
} from '../../../lib/index.ts'
import type { StrategyName } from '../../../lib/middleware/route/index.ts'
import { chatRequest, PATH, PLAIN_ANSWER } from '../workload.ts'
import { linesConfig } from './line-cases.ts'
import type { ScaleCase } from './rounds.ts'
import { accountOf, keyOf } from './rows.ts'

/** A gateway in this process, with everything in memory. */
export interface ServedSide {
  readonly keys: number
  readonly client: Pool
}

const body = chatRequest(null)

/** Whole requests, one after the other, each with any of the keys: nearly all of them new to a process of many. */
export const REQUEST_CASE: ScaleCase<ServedSide> = {
  name: 'a request',
  times: 50,
  async run({ keys, client }) {
    const secret = secretOf(Math.floor(Math.random() * keys))
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const answer = await client.request({ path: PATH, method: 'POST', headers, body })
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
    await answer.body.dump()
  },
}

/** An upstream in this process; answers its origin. */
export function serveUpstream(): Promise<string> {
  return serve((req, res) => {
    req.resume().on('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end(PLAIN_ANSWER))
  })
}

/** Serves the chain from key to charge. */
export async function serveGateway(options: {
  readonly upstream: string
  readonly keys: number
  readonly lines: number
  readonly strategy: StrategyName
}): Promise<ServedSide> {
  const { upstream, keys, lines, strategy } = options
  const { catalog } = linesConfig(lines, upstream)
  const numbers = Array.from({ length: keys }, (_, n) => n)
  const accounts = numbers.map((n) => ({ id: accountOf(n), balance: '1000' }))
  const seeds = numbers.map((n) => ({ id: keyOf(n), account: accountOf(n), secret: secretOf(n) }))
  const pool = new LeasePool({ ledger: new MemoryLedger({ accounts, keys: seeds }) })
  const app = express()
  app.disable('x-powered-by')
  app.use(beginCall(), callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }))
  app.post(
    PATH,
    authenticate({ keys: memoryKeyDirectory({ accounts: accounts.map(({ id }) => ({ id })), keys: seeds }) }),
    readRequest({ catalog }),
    billingGuard({ pool, catalog }),
    route({ catalog, strategy }),
  )
  return { keys, client: new Pool(await serve(app), { connections: 1 }) }
}

function secretOf(n: number): string {
  return `sk-${n}`
}

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
