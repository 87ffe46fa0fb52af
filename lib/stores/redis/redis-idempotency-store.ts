import type { IdempotencyClaim } from '../../core/call/index.ts'
import type { ClaimRequest, IdempotencyRecord, IdempotencyStore } from '../../core/idempotency/index.ts'
import { checkOptions } from '../../core/options/index.ts'
import { BrokenRecord } from '../../core/store-guard/index.ts'
import { askSafely } from './cluster-asking.ts'
import { aPrefix, aRedisClient, type RedisClient, type RedisScript, redisScript } from './redis-script.ts'

/*
 * A record is a hash: owner, fingerprint, state, expires (milliseconds since the epoch), answer (for repetitions). `expires` decides. The key's own
 * expiry comes later and only frees memory.
 */

/**
 * KEYS: the record. ARGV: owner, fingerprint, now, lease until, life of the key.
 * Returns: nil when the claim is taken, else owner, fingerprint, state, expiry and answer of the existing record.
 */
const CLAIM = `
local record = redis.call('HMGET', KEYS[1], 'owner', 'fingerprint', 'state', 'expires', 'answer')
local own = record[1] == ARGV[1] and record[3] == 'running'
if record[1] and tonumber(record[4]) > tonumber(ARGV[3]) and not own then return record end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'fingerprint', ARGV[2], 'state', 'running', 'expires', ARGV[4])
redis.call('HDEL', KEYS[1], 'answer')
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return false`

/** KEYS: the record. ARGV: owner, lease until, life of the key. Returns 1 while the owner holds it. */
const RENEW_CLAIM = `
local record = redis.call('HMGET', KEYS[1], 'owner', 'state')
if record[1] ~= ARGV[1] or record[2] ~= 'running' then return 0 end
redis.call('HSET', KEYS[1], 'expires', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

/** KEYS: the record. ARGV: owner, keep until, life of the key, answer if there is one. Returns 1 if it is this owner's. */
const COMPLETE = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', 'completed', 'expires', ARGV[2])
if ARGV[4] then redis.call('HSET', KEYS[1], 'answer', ARGV[4]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

/** KEYS: the record. ARGV: owner. */
const RELEASE = `
local record = redis.call('HMGET', KEYS[1], 'owner', 'state')
if record[1] ~= ARGV[1] or record[2] ~= 'running' then return 0 end
return redis.call('DEL', KEYS[1])`

/** Options of {@link RedisIdempotencyStore}. */
export interface RedisIdempotencyStoreOptions {
  /** A client of ioredis; `enableAutoPipelining` makes it faster under load. The app connects and closes it. */
  redis: RedisClient
  /** The prefix of every key. Defaults to `gateway:idempotency:`. */
  prefix?: string
}

/** How much longer a key lives than its record is valid, in milliseconds. The `expires` of a record decides. */
const SPARE_MS = 60_000

/**
 * Keeps the records of Idempotency-Keys on one Redis, for all processes that share it. Without persistence a restart of
 * Redis frees every key.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const redis = new Redis(url, { enableAutoPipelining: true })
 * app.use(idempotency({ store: new RedisIdempotencyStore({ redis }) }))
 */
export class RedisIdempotencyStore implements IdempotencyStore {
  readonly #prefix: string
  readonly #claim: RedisScript
  readonly #renew: RedisScript
  readonly #complete: RedisScript
  readonly #release: RedisScript

  constructor(options: RedisIdempotencyStoreOptions) {
    checkOptions('RedisIdempotencyStore', options, { redis: aRedisClient, prefix: aPrefix })
    const { redis, prefix = 'gateway:idempotency:' } = options
    askSafely(redis)
    this.#prefix = prefix
    this.#claim = ofOneRecord(redisScript(redis, 'gatewayIdempotencyClaim', CLAIM))
    this.#renew = ofOneRecord(redisScript(redis, 'gatewayIdempotencyRenew', RENEW_CLAIM))
    this.#complete = ofOneRecord(redisScript(redis, 'gatewayIdempotencyComplete', COMPLETE))
    this.#release = ofOneRecord(redisScript(redis, 'gatewayIdempotencyRelease', RELEASE))
  }

  async claim({ id, owner, fingerprint, now, leaseUntil }: ClaimRequest) {
    const life = lifeOf(leaseUntil - now)
    const reply = await this.#claim([this.#key(id)], [owner, fingerprint, now, leaseUntil, life])
    return reply === null ? undefined : toRecord(reply as (string | null)[])
  }

  async renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<boolean[]> {
    const life = lifeOf(leaseUntil - Date.now())
    const replies = claims.map(({ id, owner }) =>
      this.#renew([this.#key(id)], [owner, leaseUntil, life]).catch(lostIfBroken),
    )
    return (await Promise.all(replies)).map(isOne)
  }

  async complete({ id, owner }: IdempotencyClaim, keepUntil: number, answer?: string): Promise<boolean> {
    const given = [owner, keepUntil, lifeOf(keepUntil - Date.now())]
    return isOne(await this.#complete([this.#key(id)], answer === undefined ? given : [...given, answer]))
  }

  async release({ id, owner }: IdempotencyClaim): Promise<void> {
    await this.#release([this.#key(id)], [owner])
  }

  /** Does nothing: Redis removes expired keys by itself. */
  async prune(): Promise<number> {
    return 0
  }

  #key(id: string): string {
    return this.#prefix + id
  }
}

/** Separates the fault of a record, which is of another type or holds no times, from the faults of Redis. */
function ofOneRecord(script: RedisScript): RedisScript {
  return async (keys, args) => {
    try {
      return await script(keys, args)
    } catch (error) {
      const isOfRecord =
        error instanceof Error && /^(WRONGTYPE |ERR (user_script|Error running script))/.test(error.message)
      throw isOfRecord ? new BrokenRecord(`${keys[0]} holds no record: delete it`, { cause: error }) : error
    }
  }
}

/** A claim whose record is broken is lost, and the others are renewed. */
function lostIfBroken(error: unknown): 0 {
  if (error instanceof BrokenRecord) return 0
  throw error
}

/** Returns whether a reply is 1. With ioredis's `stringNumbers` it is a string. */
function isOne(reply: unknown): boolean {
  return Number(reply) === 1
}

function lifeOf(ms: number): number {
  return Math.max(0, Math.ceil(ms)) + SPARE_MS
}

function toRecord([owner, fingerprint, state, expires, answer]: (string | null)[]): IdempotencyRecord {
  return {
    owner: owner ?? '',
    fingerprint: fingerprint ?? '',
    state: state === 'completed' ? 'completed' : 'running',
    expiresAt: Number(expires),
    ...(typeof answer === 'string' && { answer }),
  }
}
