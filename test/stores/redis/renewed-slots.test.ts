import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore, type RedisLimitStoreOptions } from '../../../lib/stores/redis/index.ts'
import { SlotLeases } from '../../../lib/stores/redis/slot-leases.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { recordingLogger } from '../../support/app-server.ts'

const RENEW_MS = 1000
const turns = async () => {
  for (let i = 0; i < 3; i++) await new Promise(setImmediate)
}

/** The slots of a process on a Redis that only notes what it is told. */
function slots(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const renewed: [key: string, ids: readonly string[]][] = []
  const returned: [key: string, id: string][] = []
  const world = { fails: false }
  const guard = new StoreGuard({ name: 'redis', logger: recordingLogger(), timeoutMs: 60_000 })
  const commands = {
    renew: async (key: string, ids: readonly string[]) => {
      renewed.push([key, ids])
      if (world.fails) throw new Error('redis is down')
    },
    giveBack: async (key: string, id: string) => void returned.push([key, id]),
  }
  const leases = new SlotLeases(commands, guard, RENEW_MS)
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms)
    await turns()
  }
  return { leases, renewed, returned, pass, world }
}

describe('slots that a process holds', () => {
  it('are renewed again and again while their calls run, each set by itself', async (t) => {
    const { leases, renewed, pass } = slots(t)
    leases.hold('a', '1', true)
    leases.hold('a', '2', true)
    leases.hold('b', '3', true)
    await pass(RENEW_MS - 1)
    assert.deepEqual(renewed, [])
    await pass(1)
    const both = [
      ['a', ['1', '2']],
      ['b', ['3']],
    ]
    assert.deepEqual(renewed, both)
    leases.release('a', '1', false)
    leases.release('b', '3', false)
    await pass(RENEW_MS)
    assert.deepEqual(renewed, [...both, ['a', ['2']]])
  })

  it('are renewed a thousand at once', async (t) => {
    const { leases, renewed, pass } = slots(t)
    const ids = Array.from({ length: 2001 }, (_, i) => `${i}`)
    for (const id of ids) leases.hold('a', id, true)
    await pass(RENEW_MS)
    assert.deepEqual(
      renewed.map(([key, { length }]) => [key, length]),
      [
        ['a', 1000],
        ['a', 1000],
        ['a', 1],
      ],
    )
    assert.deepEqual(
      renewed.flatMap(([, batch]) => batch),
      ids,
    )
  })

  it('cost nothing once all have come back, until there is one again', async (t) => {
    const { leases, renewed, returned, pass } = slots(t)
    leases.hold('a', '1', true)
    leases.release('a', '1', false)
    assert.deepEqual(returned, [['a', '1']])
    await pass(RENEW_MS * 3)
    assert.deepEqual(renewed, [])
    await pass(RENEW_MS / 2)
    leases.hold('a', '2', true)
    await pass(RENEW_MS - 1)
    assert.deepEqual(renewed, [], 'the time begins with the first')
    await pass(1)
    assert.deepEqual(renewed, [['a', ['2']]])
  })

  it('come back once, and those of nobody not at all', (t) => {
    const { leases, returned } = slots(t)
    leases.hold('a', '1', true)
    for (let times = 0; times < 2; times++) leases.release('a', '1', false)
    leases.release('a', 'other', false)
    leases.release('b', '1', false)
    assert.deepEqual(returned, [['a', '1']])
    leases.release('b', '1', true)
    assert.deepEqual(returned.slice(1), [['b', '1']], 'Redis may have it all the same')
  })

  it('that Redis does not know are only forgotten, until it was told of them', async (t) => {
    const { leases, returned, renewed, pass } = slots(t)
    leases.hold('a', '1', false)
    leases.hold('a', '2', false)
    leases.release('a', '1', false)
    assert.deepEqual(returned, [])
    await pass(RENEW_MS)
    assert.deepEqual(renewed, [['a', ['2']]])
    leases.release('a', '2', false)
    assert.deepEqual(returned, [['a', '2']])
  })

  it('that Redis took late come back, unless their call runs', (t) => {
    const { leases, returned } = slots(t)
    leases.hold('a', 'runs', false)
    leases.takenLate('a', 'runs')
    leases.takenLate('a', 'over')
    leases.takenLate('b', 'runs')
    assert.deepEqual(returned, [
      ['a', 'over'],
      ['b', 'runs'],
    ])
  })

  it('whose return was not confirmed come back again, once, with the next renewal or at the end', async (t) => {
    const { leases, returned, renewed, pass } = slots(t)
    leases.unconfirmed('a', ['1', '2'])
    assert.deepEqual(returned, [])
    await pass(RENEW_MS)
    const both = [
      ['a', '1'],
      ['a', '2'],
    ]
    assert.deepEqual(returned, both)
    leases.unconfirmed('b', ['3'])
    leases.giveBackAgain()
    leases.giveBackAgain()
    assert.deepEqual(returned, [...both, ['b', '3']])
    await pass(RENEW_MS * 3)
    assert.deepEqual([returned.length, renewed], [3, []])
  })

  it('are renewed again after Redis was away, which nobody need handle', async (t) => {
    const { leases, renewed, pass, world } = slots(t)
    leases.hold('a', '1', true)
    world.fails = true
    await pass(RENEW_MS)
    world.fails = false
    leases.reconcile()
    await turns()
    assert.ok(renewed.length >= 1)
    assert.deepEqual(renewed[0], ['a', ['1']])
  })
})

/** A client that answers every script with the same, and notes what it was sent. */
function client(t: TestContext) {
  const sent: unknown[][] = []
  const redis = {
    options: {},
    sendCommand: async (command: { name: string; args: unknown[] }) => {
      sent.push([command.name, ...command.args])
      return [1, '[0,0]']
    },
  } as unknown as RedisLimitStoreOptions['redis']
  t.mock.timers.enable({ apis: ['setInterval'] })
  return { redis, sent }
}

describe('a limit store on Redis', () => {
  it('renews its slots three times in the time that they last', async (t) => {
    for (const [given, leaseMs] of [
      [{}, 25_000],
      [{ leaseMs: 9000 }, 9000],
    ] as const) {
      const { redis, sent } = client(t)
      const store = new RedisLimitStore({ redis, now: () => 5, logger: recordingLogger(), ...given })
      await store.admit(demand([limit('concurrency', 'k', 2)]))
      const before = sent.length
      t.mock.timers.tick(Math.floor(leaseMs / 3) - 1)
      await turns()
      assert.equal(sent.length, before)
      t.mock.timers.tick(2)
      await turns()
      assert.equal(sent.length, before + 1)
      assert.deepEqual(sent.at(-1)?.slice(3, 6), ['gateway:{limits}:concurrency:key:k', '5', String(leaseMs)])
      t.mock.timers.reset()
    }
  })

  it('is refused options that it cannot use', (t) => {
    const { redis } = client(t)
    const wrong = (options: object) =>
      assert.throws(() => new RedisLimitStore({ redis, ...options }), TypeError)
    for (const leaseMs of [999, 30_001, 1000.5, Number.NaN]) wrong({ leaseMs })
    for (const timeoutMs of [0, -1, 1.5, Number.NaN]) wrong({ timeoutMs })
    for (const given of [undefined, null, {}]) wrong({ redis: given })
    const cluster = { ...redis, isCluster: true, nodes: () => [], on() {} }
    for (const prefix of ['gateway', 'gateway:{}', '{', 'a}b{']) wrong({ redis: cluster, prefix })
    for (const options of [
      { leaseMs: 1000 },
      { leaseMs: 30_000 },
      { timeoutMs: 1 },
      { prefix: 'gateway' },
      { redis: cluster, prefix: 'a{b}c' },
      { redis: cluster },
    ])
      assert.equal(new RedisLimitStore({ redis, ...options } as RedisLimitStoreOptions).away, false)
  })
})
