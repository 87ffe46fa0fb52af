import type { AddressInfo } from 'node:net'
import { MemoryLimitStore } from 'express-model-gateway/rate-limit'
import { RedisLimitStore } from 'express-model-gateway/redis'
import { Redis } from 'ioredis'
import { createApp } from './app.ts'

const { PORT = '3000', REDIS_URL } = process.env

const redis = REDIS_URL === undefined ? undefined : new Redis(REDIS_URL, { enableAutoPipelining: true })
// The store logs when Redis goes away and when it is back, so that errors of single reconnects can be ignored.
redis?.on('error', () => {})

const shared = redis && new RedisLimitStore({ redis })
const store = shared ?? new MemoryLimitStore()
const server = createApp({ store }).listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`the shop is open at ${origin}, its counts are in ${redis ? 'Redis' : 'memory'}`)
  console.log(`  for i in 1 2 3 4 5 6; do curl -s -D - ${origin}/search -H 'X-User: ann'; echo; done`)
})

process.once('SIGTERM', () => {
  server.close(async () => {
    await shared?.close()
    redis?.disconnect()
  })
})
