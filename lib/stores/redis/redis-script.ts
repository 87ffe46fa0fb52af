import type { Cluster, Redis } from 'ioredis'

/** A client that the app made, of one server or of a cluster. */
export type RedisClient = Redis | Cluster

/** A Lua script as a function of its keys and arguments. */
export type RedisScript = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>

/**
 * Makes a script callable on a client. It is sent once per connection, by its hash from then on, and joins the
 * client's automatic pipelines.
 *
 * @param name a name that no other script on the client has.
 */
export function redisScript(redis: RedisClient, name: string, lua: string): RedisScript {
  redis.defineCommand(name, { lua })
  const commands = redis as unknown as Record<string, (...args: (string | number)[]) => Promise<unknown>>
  return async (keys, args) => commands[name]?.(keys.length, ...keys, ...args)
}

/**
 * As {@link redisScript}, but written to the connection at once: it waits for no automatic pipeline, so that what is
 * asked one after the other is done in that order.
 */
export function promptScript(redis: RedisClient, name: string, lua: string): RedisScript {
  redis.defineCommand(name, { lua })
  return async (keys, args) => {
    const pipeline = redis.pipeline()
    const commands = pipeline as unknown as Record<string, (...args: (string | number)[]) => unknown>
    commands[name]?.(keys.length, ...keys, ...args)
    const [error, reply] = (await pipeline.exec())?.[0] ?? []
    if (error) throw error
    return reply
  }
}
