import express from 'express'
import { errorEnvelope } from 'express-model-gateway/error-envelope'
import { idempotency } from 'express-model-gateway/idempotency'
import { RedisIdempotencyStore } from 'express-model-gateway/redis'
import { openDatabase, SqlIdempotencyStore } from 'express-model-gateway/sql'
import { Redis } from 'ioredis'

/* An app with handlers of its own behind `idempotency`: says its port, and serves until it is killed. */

const [storeUrl, leaseMs, workUrl] = process.argv.slice(2) as [string, string, string]

const store = storeUrl.startsWith('redis:')
  ? new RedisIdempotencyStore({ redis: new Redis(storeUrl) })
  : new SqlIdempotencyStore(await openDatabase(storeUrl))

/** Work that a test ends when it likes. */
const work = async (): Promise<string> => (await fetch(workUrl, { method: 'POST', body: '{}' })).text()

const app = express()
// A machine that is busy with other things is not an outage.
app.use(express.json(), idempotency({ store, claimLeaseMs: Number(leaseMs), storeTimeoutMs: 5000 }))
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
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as { port: number }).port}\n`)
})
