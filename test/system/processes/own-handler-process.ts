import express from 'express'
import { Redis } from 'ioredis'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import { openDatabase, SqlIdempotencyStore } from '../../../lib/stores/sql/index.ts'
import { listen } from '../../support/gateway.ts'

/* An app with handlers of its own behind `idempotency`: says its port, and serves until it is killed. */

const [storeUrl, leaseMs, workUrl] = process.argv.slice(2) as [string, string, string]

const store = storeUrl.startsWith('redis:')
  ? new RedisIdempotencyStore({ redis: new Redis(storeUrl) })
  : new SqlIdempotencyStore(await openDatabase(storeUrl))

/** Work that a test ends when it likes. */
const work = async (): Promise<string> => (await fetch(workUrl, { method: 'POST', body: '{}' })).text()

const app = express()
// A machine that is busy with other things is not an outage.
app.use(express.json(), idempotency({ store, leaseMs: Number(leaseMs), storeTimeoutMs: 5000 }))
app.post('/json', async (_req, res) => void res.status(201).json({ work: await work() }))
app.post('/piped', async (_req, res) => {
  const done = await work()
  res.writeHead(200, { 'content-type': 'text/plain' })
  res.write(done)
  res.end('the end')
})
app.post('/streamed', async (_req, res) => {
  res.write('the beginning, ')
  res.write(await work())
  res.end('the end')
})
app.use(errorEnvelope())
const server = await listen(app)
process.stdout.write(`${(server.address() as { port: number }).port}\n`)
