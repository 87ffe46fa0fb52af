import { randomUUID } from 'node:crypto'
import { type IRateLimiterRedisOptions, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { type RedisClient, type RedisScript, redisScript } from './redis-script.ts'

/**
 * Gives points back once. KEYS: the count, and the note that the points are back. ARGV: the points, the life of the note in
 * milliseconds. Returns the count and how long its window lasts. A window that is over is not begun again.
 */
const GIVE_BACK = `
local left = redis.call('PTTL', KEYS[1])
if left < 0 then return { 0, 1 } end
if redis.call('SET', KEYS[2], '', 'PX', ARGV[2], 'NX') then redis.call('DECRBY', KEYS[1], ARGV[1]) end
return { redis.call('GET', KEYS[1]), left }`

/** A client has connected again and repeated its commands within this time. */
const NOTE_MS = 10_000

/**
 * A limiter that gives points back once, however often the client asks: a client that loses its connection repeats the commands
 * that have no answer, and Redis may have run them. Points that are counted twice admit too few requests; points that are given
 * back twice would admit too many.
 */
export class RedisLimiter extends RateLimiterRedis {
  readonly #giveBack: RedisScript

  constructor(options: IRateLimiterRedisOptions & { storeClient: RedisClient }) {
    super(options)
    this.#giveBack = redisScript(options.storeClient, 'gatewayGiveBack', GIVE_BACK)
  }

  override async reward(key: string | number, points = 1): Promise<RateLimiterRes> {
    const counter = this.getKey(key)
    const reply = await this.#giveBack([counter, noteOf(counter)], [points, NOTE_MS])
    const [used, leftMs] = (reply as (number | string)[]).map(Number)
    return new RateLimiterRes(0, leftMs, used)
  }
}

/** Returns the name of a note on the node of a cluster that has the counter. */
function noteOf(counter: string): string {
  return `${counter.includes('{') ? counter : `{${counter}}`}:back:${randomUUID()}`
}
