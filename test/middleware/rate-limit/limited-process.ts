/**
 * A process with one limited route:
 * `node limited-process.ts <port of Redis, or memory> <JSON of rpm, tpm, concurrency, windowMs, subject>`.
 * Each request names its tokens in `x-tokens` and how long it runs in `x-hold`. The answer names these tokens, when it
 * was admitted, and how many ran at that moment in all processes, counted in Redis apart from the limits.
 */
import type { AddressInfo } from 'node:net'
import express, { type Request } from 'express'
import { Redis } from 'ioredis'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'

const [port, settings = '{}'] = process.argv.slice(2)
const { windowMs, subject = 'shared', rpm, tpm, concurrency } = JSON.parse(settings)
const redis =
  port === 'memory'
    ? undefined
    : new Redis(Number(port), '127.0.0.1', { enableAutoPipelining: true, retryStrategy: () => 50 })
redis?.on('error', () => {})
const tokensOf = (req: Request) => Number(req.headers['x-tokens'] ?? 0)

const app = express()
app.use(
  rateLimit({
    levels: [{ name: 'key', by: () => subject, requests: rpm, tokens: tpm, concurrency }],
    tokens: tokensOf,
    windowMs,
    ...(redis && { store: new RedisLimitStore({ redis }) }),
  }),
)
app.use(async (req, res) => {
  const admitted = { admittedAt: Date.now(), tokens: tokensOf(req) }
  const hold = Number(req.headers['x-hold'] ?? 0)
  if (hold === 0) {
    res.json(admitted)
    return
  }
  const running = await redis?.incr('running')
  await new Promise((resolve) => setTimeout(resolve, hold))
  await redis?.decr('running')
  res.json({ ...admitted, running })
})
app.use(errorEnvelope())
const server = app.listen(0, '127.0.0.1', () => {
  process.send?.((server.address() as AddressInfo).port)
})
process.once('disconnect', () => process.exit())
