import type { AddressInfo } from 'node:net'
import express from 'express'
import { authenticate, memoryKeyDirectory } from 'express-model-gateway/authenticate'
import { beginCall } from 'express-model-gateway/begin-call'
import { CallLogWriter, callLog, MemoryCallStore } from 'express-model-gateway/call-log'
import { loadConfig } from 'express-model-gateway/config'
import { errorEnvelope } from 'express-model-gateway/error-envelope'
import { type IdempotencyStore, idempotency } from 'express-model-gateway/idempotency'
import { readRequest } from 'express-model-gateway/read-request'
import { RedisIdempotencyStore } from 'express-model-gateway/redis'
import { LineRegistry, route } from 'express-model-gateway/route'
import { openDatabase, SqlIdempotencyStore } from 'express-model-gateway/sql'
import { Redis } from 'ioredis'

/* A gateway in a process of its own: says its URL, and serves until it is killed. */

const [storeUrl, leaseMs, secret, ...lines] = process.argv.slice(2) as [string, string, string, ...string[]]

async function storeOf(url: string): Promise<IdempotencyStore> {
  if (url.startsWith('redis:')) return new RedisIdempotencyStore({ redis: new Redis(url) })
  return new SqlIdempotencyStore(await openDatabase(url))
}

const config = loadConfig({
  accounts: [{ id: 'acme' }],
  keys: [{ id: 'key_acme', account: 'acme', secret }],
  models: [{ id: 'chat', kind: 'chat' }],
  // In the order in which they are tried.
  lines: lines.map((url, priority) => ({
    id: `line-${priority}`,
    provider: `provider-${priority}`,
    protocol: 'openai',
    baseUrl: `${url}/v1`,
    priority,
    models: { chat: 'upstream-chat' },
  })),
})
const { catalog, region } = config
const once = idempotency({
  store: await storeOf(storeUrl),
  claimLeaseMs: Number(leaseMs),
  // A machine that is busy with other things is not an outage.
  storeTimeoutMs: 5000,
})
const app = express()
app.use(
  beginCall(),
  callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }),
  authenticate({ keys: memoryKeyDirectory(config), region }),
)
app.post(
  '/v1/chat/completions',
  readRequest({ catalog }),
  once,
  route({ catalog, lines: new LineRegistry() }),
)
app.use(errorEnvelope())
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
