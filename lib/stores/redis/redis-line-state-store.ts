import { randomUUID } from 'node:crypto'
import { checkOptions } from '../../core/options/index.ts'
import type { LineNote, LineStateStore, StandingNote } from '../../routing/lines/line-state-store.ts'
import { askSafely, isCluster } from './cluster-asking.ts'
import { aPrefix, aRedisClient, type RedisClient, type RedisScript, redisScript } from './redis-script.ts'

/**
 * Leaves notes in a hash and returns all that stand. KEYS: the hash. ARGV: the channel, the handle, then for each note its id,
 * value, life in milliseconds, condition, and whether it has a base, which is last. A field holds the end and the beginning of
 * the note, by the clock of Redis, and its value. The reply has the id, the value and the milliseconds left of each note.
 */
const EXCHANGE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local standing = {}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local ends, begun, value = string.match(fields[i + 1], '^(%d+) (%d+) (.*)$')
  -- A note that begins later is from before the clock was set back, and would stand for so much longer.
  if ends and tonumber(ends) > now and tonumber(begun) <= now + 1000 then
    standing[fields[i]] = { tonumber(ends), value }
  else
    redis.call('HDEL', KEYS[1], fields[i])
  end
end
local changed = false
for i = 3, #ARGV, 6 do
  local id, value, life, when = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local base = ARGV[i + 4] == '1' and ARGV[i + 5] or nil
  local old = standing[id]
  local known = old and old[2] or nil
  local may = (when == 'unchanged' and known == base)
    or (when == 'longer' and (known == nil or old[1] < now + life))
  if may then
    if (life == 0 and known ~= nil) or (life > 0 and known ~= value) then changed = true end
    if life == 0 then
      redis.call('HDEL', KEYS[1], id)
      standing[id] = nil
    else
      redis.call('HSET', KEYS[1], id, string.format('%d %d ', now + life, now) .. value)
      standing[id] = { now + life, value }
    end
  end
end
if #ARGV > 2 then redis.call('PEXPIRE', KEYS[1], 3600000) end
if changed then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
local reply = {}
for id, note in pairs(standing) do
  reply[#reply + 1] = id
  reply[#reply + 1] = note[2]
  reply[#reply + 1] = note[1] - now
end
return reply
`

/** Options of {@link RedisLineStateStore}. */
export interface RedisLineStateStoreOptions {
  /** A client of ioredis. The app connects and closes it. */
  redis: RedisClient
  /** The prefix of the key and the channel. Defaults to `gateway:{lines}:`. */
  prefix?: string
}

/**
 * Keeps the notes that processes exchange about their lines on one Redis. It is small, and Redis may lose it.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const sharing = new LineSharing({ store: new RedisLineStateStore({ redis }), lines })
 */
export class RedisLineStateStore implements LineStateStore {
  readonly #id = randomUUID()
  readonly #redis: RedisClient
  readonly #key: string
  readonly #channel: string
  readonly #exchange: RedisScript

  constructor(options: RedisLineStateStoreOptions) {
    checkOptions('RedisLineStateStore', options, { redis: aRedisClient, prefix: aPrefix })
    const { redis, prefix = 'gateway:{lines}:' } = options
    askSafely(redis)
    this.#redis = redis
    // Older versions keep their notes at `notes`. They would misread these, and let lines rest for as long as any may.
    this.#key = `${prefix}standing`
    this.#channel = `${prefix}changed`
    this.#exchange = redisScript(redis, 'gatewayLineStates', EXCHANGE)
  }

  async exchange(notes: readonly LineNote[]): Promise<ReadonlyMap<string, StandingNote>> {
    const given = notes.flatMap(({ id, value, lifeMs, when, base }) => {
      const life = Math.ceil(lifeMs)
      return [id, value, life, when, base === undefined ? 0 : 1, base ?? '']
    })
    const reply = (await this.#exchange([this.#key], [this.#channel, this.#id, ...given])) as (
      | string
      | number
    )[]
    const standing = new Map<string, StandingNote>()
    for (let i = 0; i < reply.length; i += 3)
      standing.set(`${reply[i]}`, { value: `${reply[i + 1]}`, leftMs: Number(reply[i + 2]) })
    return standing
  }

  /** Subscribes on a connection of its own. What is missed while it is down is read with the next exchange. */
  watch(changed: () => void): () => void {
    const redis = this.#redis
    // A cluster's client has a connection for subscriptions already.
    const subscriber = isCluster(redis) ? redis : redis.duplicate()
    const receive = (channel: string, from: string): void => {
      if (channel === this.#channel && from !== this.#id) changed()
    }
    if (subscriber !== redis) subscriber.on('error', ignore)
    subscriber.on('message', receive)
    subscriber.subscribe(this.#channel).catch(ignore)
    return () => {
      subscriber.off('message', receive)
      if (subscriber !== redis) subscriber.disconnect()
    }
  }
}

/** The guard of the exchanges reports outages. */
function ignore(): void {}
