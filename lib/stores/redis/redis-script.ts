import { createHash } from 'node:crypto'
import { type Cluster, Command, type Redis } from 'ioredis'
import { anObjectWith, type OptionRule, required } from '../../core/options/index.ts'

/** A client that the app made, of one server or of a cluster. */
export type RedisClient = Redis | Cluster

/** A client as an option of a store, and the method that the store calls. */
export function aRedisClient(method: 'sendCommand' | 'defineCommand'): OptionRule {
  return required(anObjectWith('a client of ioredis, such as new Redis(url)', method))
}

/** What the keys of a store begin with, as an option of it. */
export const aPrefix: OptionRule = { be: 'a string', accepts: (value) => typeof value === 'string' }

/** A Lua script as a function of its keys and arguments. */
export type RedisScript = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>

/**
 * Makes a script callable on a client. Its calls join the client's automatic pipelines.
 *
 * @param name a name that no other script on the client has.
 */
export function redisScript(redis: RedisClient, name: string, lua: string): RedisScript {
  redis.defineCommand(name, { lua })
  const commands = redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>
  return async (keys, args) => commands[name]?.(keys.length, ...keys, ...args)
}

/**
 * Makes a script callable on a client. Each call is written to the connection at once, without an automatic pipeline, so
 * that Redis gets calls in their order.
 */
export function promptScript(redis: RedisClient, lua: string): RedisScript {
  const sha = createHash('sha1').update(lua).digest('hex')
  const options = { keyPrefix: redis.options.keyPrefix ?? '', replyEncoding: 'utf8' } as const
  let isKnown = false
  return async (keys, args) => {
    const rest = [keys.length, ...keys, ...args]
    if (isKnown) {
      try {
        return await redis.sendCommand(new Command('evalsha', [sha, ...rest], options))
      } catch (error) {
        // A Redis that was started again, or replaced, does not have the script.
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      }
    }
    const reply = await redis.sendCommand(new Command('eval', [lua, ...rest], options))
    isKnown = true
    return reply
  }
}
