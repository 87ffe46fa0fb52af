import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Redis } from 'ioredis'
import { type RedisServer, startRedis } from './redis-server.ts'
import { untilAsync } from './until.ts'

/** A Redis Cluster of three masters, each with a replica. */
export interface RedisCluster {
  /** As the gateway takes it. */
  readonly url: string
  /** The clients of the masters that live. */
  masters(): Promise<Redis[]>
  /** The master that has a key. */
  masterOf(key: string): Promise<RedisServer>
  /** Moves the slot of a key to another master, key by key, as resharding does. */
  moveSlot(key: string): Promise<void>
  /** Kills a master; its replica takes its place after some seconds. */
  kill(node: RedisServer): Promise<void>
  close(): Promise<void>
}

const FLAGS = [
  '--cluster-enabled',
  'yes',
  '--cluster-announce-ip',
  '127.0.0.1',
  '--cluster-node-timeout',
  '1500',
]

/** Starts it, and waits until all nodes agree. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes = await Promise.all(Array.from({ length: 6 }, () => startRedis({ settings: FLAGS })))
  const clients = new Map(nodes.map((node) => [node, node.client()]))
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`)
  const made = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes']
  await promisify(execFile)('redis-cli', made)
  for (const client of clients.values())
    await untilAsync(async () => `${await client.call('CLUSTER', 'INFO')}`.includes('cluster_state:ok'))

  const masters = async (): Promise<[RedisServer, Redis][]> => {
    const all = await Promise.all(
      [...clients].map(async ([node, client]) => ({ node, client, role: `${await client.call('ROLE')}` })),
    )
    return all.flatMap(({ node, client, role }) => (role.startsWith('master') ? [[node, client]] : []))
  }
  const owner = async (key: string): Promise<{ slot: string; from: RedisServer; to: RedisServer }> => {
    const slot = `${await [...clients.values()][0]?.call('CLUSTER', 'KEYSLOT', key)}`
    const all = await masters()
    const owns = await Promise.all(all.map(([, client]) => hasSlot(client, Number(slot))))
    const from = all[owns.indexOf(true)]
    const to = all[owns.indexOf(false)]
    if (!from || !to) throw new Error(`no two masters for the slot ${slot}`)
    return { slot, from: from[0], to: to[0] }
  }
  return {
    url: `redis+cluster://${addresses.join(',')}`,
    masters: async () => (await masters()).map(([, client]) => client),
    masterOf: async (key) => (await owner(key)).from,
    async moveSlot(key) {
      const { slot, from, to } = await owner(key)
      const [source, target] = [clients.get(from) as Redis, clients.get(to) as Redis]
      const targetId = `${await target.call('CLUSTER', 'MYID')}`
      await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', `${await source.call('CLUSTER', 'MYID')}`)
      await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId)
      for (;;) {
        const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, '100')) as string[]
        if (keys.length === 0) break
        await source.call('MIGRATE', '127.0.0.1', `${to.port}`, '', '0', '5000', 'KEYS', ...keys)
      }
      for (const client of [target, source]) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId)
    },
    async kill(node) {
      clients.get(node)?.disconnect()
      clients.delete(node)
      await node.kill()
    },
    async close() {
      await Promise.all(nodes.map((node) => node.close()))
    },
  }
}

async function hasSlot(client: Redis, slot: number): Promise<boolean> {
  const all = `${await client.call('CLUSTER', 'NODES')}`.split('\n')
  const ranges =
    all
      .find((line) => line.includes('myself'))
      ?.split(' ')
      .slice(8) ?? []
  return ranges.some((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return slot >= Number(first) && slot <= Number(last)
  })
}
