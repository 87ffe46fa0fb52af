import type { Cluster, Redis } from 'ioredis'
import { anObjectWith, type OptionRule, required } from '../../core/options/index.ts'

/** A client that the app made, of one server or of a cluster. */
export type RedisClient = Redis | Cluster

/** A client as an option of a store. */
export const aRedisClient: OptionRule = required(
  anObjectWith('a client of ioredis, such as new Redis(url)', 'defineCommand'),
)

/** The beginning of the keys of a store, as an option of it. */
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
