// The cost of rateLimit per request, in microseconds: node test/bench/rate-limit-cost.ts
// The middleware alone, called with a request and a response that were made before.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Request, RequestHandler, Response } from 'express'
import { callOf, openCall } from '../../lib/core/call/index.ts'
import { rateLimit } from '../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../lib/stores/redis/index.ts'
import { startRedis, WITHOUT_REDIS } from '../support/redis-server.ts'

const ROUND = 10_000
const ROUNDS = 8
const MOST = 1e9

/** A directory hands out the same record of a key each time. */
const principals = Array.from({ length: 10_000 }, (_, i) => ({
  keyId: `key_${i}`,
  accountId: `account_${i}`,
  keyLimits: { rpm: MOST, tpm: MOST },
  accountLimits: { rpm: MOST, tpm: MOST, concurrency: MOST },
  lineRegions: undefined,
  mayUseModel: () => true,
}))

/** Requests of `keys` keys, with all five limits. */
function requests(keys: number): { req: Request; res: Response }[] {
  return Array.from({ length: ROUND }, (_, i) => {
    const req = new IncomingMessage(new Socket())
    const res = new ServerResponse(req)
    Object.assign(req, { res })
    openCall(req, res).principal = principals[i % keys]!
    return { req: req as Request, res: res as Response }
  })
}

/** Best of several rounds: other work of the machine can only slow one down. */
async function cost(middleware: RequestHandler, keys: number, atATime: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const all = requests(keys)
    const one = ({ req, res }: (typeof all)[number]) =>
      new Promise<void>(
        (resolve, reject) => void middleware(req, res, (error) => (error ? reject(error) : resolve())),
      )
    const start = performance.now()
    for (let i = 0; i < all.length; i += atATime) await Promise.all(all.slice(i, i + atATime).map(one))
    best = Math.min(best, performance.now() - start)
    for (const { res } of all) res.emit('close')
  }
  return (best / ROUND) * 1000
}

const nothing: RequestHandler = (req, _res, next) => {
  callOf(req)
  next()
}
const tokens = () => 100
const print = (name: string, microseconds: number) =>
  console.log(`${name.padEnd(34)} ${microseconds.toFixed(2).padStart(8)} µs`)

const empty = await cost(nothing, 1, 100)
for (const keys of [1, 10, 1000, 10_000])
  print(`memory, five limits, ${keys} keys`, (await cost(rateLimit({ tokens }), keys, 100)) - empty)
if (WITHOUT_REDIS) console.log(WITHOUT_REDIS)
else {
  const server = await startRedis()
  const redis = server.client({ enableAutoPipelining: true })
  const middleware = rateLimit({ tokens, store: new RedisLimitStore({ redis, timeoutMs: 10_000 }) })
  for (const atATime of [1, 32, 200])
    print(`Redis, five limits, ${atATime} at a time`, (await cost(middleware, 100, atATime)) - empty)
  await server.close()
}
process.exit()
