/**
 * A process with one limited route: `node limited-process.ts <port of Redis> <JSON of rpm, tpm, concurrency, windowMs>`.
 * Each request names its tokens in `x-tokens` and how long it runs in `x-hold`. The answer tells how many ran at that
 * moment in all processes, counted in Redis apart from the limits.
 */
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Redis } from 'ioredis'
import { errorEnvelope } from '../../lib/error-envelope/index.ts'
import { rateLimit } from '../../lib/rate-limit/index.ts'
import { RedisLimitStore } from '../../lib/redis/index.ts'

const [port, settings = '{}'] = process.argv.slice(2)
const { windowMs, ...limits } = JSON.parse(settings)
const redis = new Redis(Number(port), '127.0.0.1', { enableAutoPipelining: true, retryStrategy: () => 50 })
redis.on('error', () => {})

const app = express()
app.use(
  rateLimit({
    levels: [{ name: 'key', by: () => 'shared', ...limits }],
    tokens: (req) => Number(req.headers['x-tokens'] ?? 0),
    store: new RedisLimitStore({ redis }),
    windowMs,
  }),
)
app.use(async (req, res) => {
  const hold = Number(req.headers['x-hold'] ?? 0)
  if (hold === 0) {
    res.json({})
    return
  }
  const running = await redis.incr('running')
  await new Promise((resolve) => setTimeout(resolve, hold))
  await redis.decr('running')
  res.json({ running })
})
app.use(errorEnvelope())
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.((server.address() as AddressInfo).port)
})
process.once('disconnect', () => process.exit())
