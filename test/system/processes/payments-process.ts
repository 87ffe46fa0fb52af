import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type ErrorRequestHandler } from 'express'
import { GatewayError } from 'express-model-gateway/errors'
import { type IdempotencyStore, idempotency, MemoryIdempotencyStore } from 'express-model-gateway/idempotency'
import { RedisIdempotencyStore } from 'express-model-gateway/redis'
import { openDatabase, SqlIdempotencyStore } from 'express-model-gateway/sql'
import { Redis } from 'ioredis'

/* A payments API in a process of its own: says its URL, then each payment that it makes, and serves until it is killed. */

const [storeUrl = 'memory'] = process.argv.slice(2)

async function storeOf(url: string): Promise<IdempotencyStore> {
  if (url === 'memory') return new MemoryIdempotencyStore()
  if (url.startsWith('redis:')) return new RedisIdempotencyStore({ redis: new Redis(url) })
  return new SqlIdempotencyStore(await openDatabase(url))
}

/** Fails one operation in 40: half of them before, half of them after they have happened. */
function failing<S extends object>(store: S): S {
  let operations = 0
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown
      if (typeof member !== 'function') return member
      return async (...given: unknown[]) => {
        const turn = ++operations % 80
        if (turn === 20) throw new Error('the connection was reset')
        const answer: unknown = await (member as (...all: unknown[]) => unknown).apply(target, given)
        if (turn === 60) throw new Error('the answer was lost')
        return answer
      }
    },
  })
}

const app = express()
const once = idempotency({
  replay: true,
  store: failing(await storeOf(storeUrl)),
  // A machine that is busy with other things is not an outage.
  storeTimeoutMs: 2000,
  logger: { info() {}, warn() {}, error() {} },
})
app.post('/payments', express.json(), once, async (req, res) => {
  const receipt = randomUUID()
  process.stdout.write(`${req.get('idempotency-key')} ${receipt}\n`)
  const { how } = req.body as { how: string }
  if (how !== 'at once') await sleep(Math.random() * 30)
  if (how === 'throws') throw Object.assign(new Error('card processor'), { receipt })
  if (how === 'stream') {
    res.status(201).type('json').write('{"receipt":')
    await sleep(Math.random() * 10)
    res.end(`"${receipt}"}`)
  } else res.status(how === 'declined' ? 402 : 201).json({ receipt })
})
const fail: ErrorRequestHandler = (error: Error & { receipt?: string }, _req, res, _next) => {
  if (error instanceof GatewayError) res.status(error.status).set(error.headers).json({ code: error.code })
  else res.status(500).json({ receipt: error.receipt })
}
app.use(fail)
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object')
    process.stdout.write(`http://127.0.0.1:${address.port}/payments\n`)
})
