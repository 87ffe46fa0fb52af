import { randomUUID } from 'node:crypto'
import { checkOptions } from '../../core/options/index.ts'
import type { LineNote, LineStateStore, StandingNote } from '../../routing/lines/line-state-store.ts'
import { askSafely, isCluster } from './cluster-asking.ts'
import { EXCHANGE } from './line-state-script.ts'
import { aPrefix, aRedisClient, type RedisClient, type RedisScript, redisScript } from './redis-script.ts'

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
    // At `notes` are those of versions that would misread these: they would rest for as long as any line may.
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
