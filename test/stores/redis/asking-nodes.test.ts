import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import type { Command } from 'ioredis'
import { askSafely } from '../../../lib/stores/redis/cluster-asking.ts'
import {
  RedisIdempotencyStore,
  RedisLimitStore,
  RedisLineStateStore,
} from '../../../lib/stores/redis/index.ts'
import type { RedisClient } from '../../../lib/stores/redis/redis-script.ts'

/** A node that notes its commands, and whose connection may be broken. */
class Node {
  readonly sent: string[] = []
  isBroken = false
  asking?: () => Promise<unknown>

  async sendCommand(command: Command): Promise<unknown> {
    this.sent.push(command.name)
    if (this.isBroken) throw new Error('Connection is closed.')
    return 'OK'
  }
}

/** A client of a cluster, or of one server, that notes what is done to its connection. */
class Nodes extends EventEmitter {
  readonly done: string[] = []
  readonly copies: Nodes[] = []

  readonly isCluster: boolean
  readonly options = {}
  readonly all = [new Node(), new Node()]

  constructor(isCluster: boolean) {
    super()
    this.isCluster = isCluster
  }

  nodes(): Node[] {
    return this.all
  }

  defineCommand(): void {}

  async sendCommand(): Promise<void> {}

  async subscribe(channel: string): Promise<void> {
    this.done.push(`subscribe ${channel}`)
  }

  disconnect(): void {
    this.done.push('disconnect')
  }

  duplicate(): Nodes {
    const copy = new Nodes(this.isCluster)
    this.copies.push(copy)
    return copy
  }
}

describe('a node of a cluster that a key is on its way to', () => {
  it('is asked without anybody behind it, whether it answers or not, and whenever it joined', async () => {
    const cluster = new Nodes(true)
    askSafely(cluster as unknown as RedisClient)
    const joined = new Node()
    cluster.emit('+node', joined)
    for (const node of [...cluster.all, joined])
      for (node.isBroken of [false, true]) assert.equal(await node.asking?.(), 'OK')
    for (const node of [...cluster.all, joined]) assert.deepEqual(node.sent, ['asking', 'asking'])
  })

  it('is watched once, however many stores share the client', () => {
    const cluster = new Nodes(true)
    for (let stores = 0; stores < 3; stores++) askSafely(cluster as unknown as RedisClient)
    assert.equal(cluster.listenerCount('+node'), 1)
  })

  for (const Store of [RedisIdempotencyStore, RedisLimitStore, RedisLineStateStore])
    it(`is asked so by a ${Store.name}`, async () => {
      const cluster = new Nodes(true)
      assert.ok(new Store({ redis: cluster as unknown as RedisClient }))
      for (const node of cluster.all) {
        node.isBroken = true
        assert.equal(await node.asking?.(), 'OK')
      }
    })

  it('is nothing that a client of one server has', () => {
    const single = new Nodes(false)
    askSafely(single as unknown as RedisClient)
    assert.equal(single.listenerCount('+node'), 0)
    assert.deepEqual(
      single.all.map(({ asking }) => asking),
      [undefined, undefined],
    )
  })
})

describe('a listener for changes of lines', () => {
  const subscribed = 'subscribe gateway:{lines}:changed'

  /** Listens on a client; returns how to end it, and what was heard. */
  function listening(redis: Nodes) {
    const heard: string[] = []
    const store = new RedisLineStateStore({ redis: redis as unknown as RedisClient })
    return { heard, end: store.watch(() => void heard.push('changed')) }
  }

  it('on a cluster has the connection of its client, which stays open', () => {
    const cluster = new Nodes(true)
    const { heard, end } = listening(cluster)
    cluster.emit('message', 'gateway:{lines}:changed', 'other')
    cluster.emit('message', 'another channel', 'other')
    end()
    cluster.emit('message', 'gateway:{lines}:changed', 'other')
    assert.deepEqual([heard, cluster.done, cluster.copies], [['changed'], [subscribed], []])
    assert.equal(cluster.listenerCount('message'), 0)
  })

  it('on one server has a connection of its own, which ends, and whose faults end nothing', () => {
    const server = new Nodes(false)
    const { heard, end } = listening(server)
    const [own] = server.copies
    assert.ok(own)
    own.emit('error', new Error('Connection is closed.'))
    own.emit('message', 'gateway:{lines}:changed', 'other')
    end()
    assert.deepEqual([heard, server.done, own.done], [['changed'], [], [subscribed, 'disconnect']])
  })
})
