import { type Cluster, Command, type Redis } from 'ioredis'
import type { RedisClient } from './redis-script.ts'

const known = new WeakSet<Cluster>()

/**
 * Makes a cluster's client follow a key that is on its way to another node. ioredis sends ASKING to that node unwatched: where
 * the connection breaks just then, the rejection would end the process, and with auto-pipelining ASKING would come behind the
 * command that it is for.
 */
export function askSafely(redis: RedisClient): void {
  if (!isCluster(redis) || known.has(redis)) return
  known.add(redis)
  for (const node of redis.nodes()) watch(node)
  redis.on('+node', watch)
}

function watch(node: Redis): void {
  // The command behind it fails by itself.
  const ask = () => (node.sendCommand(new Command('asking')) as Promise<'OK'>).catch(() => 'OK' as const)
  node.asking = ask
}

export function isCluster(redis: RedisClient): redis is Cluster {
  return redis.isCluster
}
