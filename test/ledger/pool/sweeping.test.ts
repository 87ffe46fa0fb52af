import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { WalletsLocked } from '../../../lib/ledger/index.ts'
import { DOWN, sweeper } from '../support/lone-sweeper.ts'
import { turns } from '../support/virtual-clock.ts'

describe('a lease without renewals', () => {
  it('is returned at the first check thirty seconds after it was first seen, and logged', async () => {
    const { clock, logger, open, swept, sweeper: sweeping } = sweeper()
    open.set('left', 3)
    await clock.advance(32_999)
    assert.deepEqual([swept, sweeping.swept], [[], 0])
    await clock.advance(1)
    assert.deepEqual([swept, sweeping.swept], [[['left', 3, 33_000]], 1])
    assert.deepEqual(logger.lines, [
      {
        level: 'warn',
        message: 'a lease that nobody renewed was returned',
        fields: { lease: 'left', wallet: 'account:acme', owner: 'owner of left' },
      },
    ])
    await clock.advance(60_000)
    assert.equal(swept.length, 1)
  })

  it('is checked every three seconds, until close', async () => {
    const { clock, world, sweeper: sweeping } = sweeper()
    await clock.advance(9500)
    assert.deepEqual(world.polls, [3000, 6000, 9000])
    sweeping.close()
    await clock.advance(30_000)
    assert.equal(world.polls.length, 3)
  })

  it('is not returned while it is renewed, and is watched from each renewal on', async () => {
    const { clock, open, swept } = sweeper()
    open.set('lives', 1)
    for (let beats = 2; beats <= 8; beats++) {
      await clock.advance(28_000)
      open.set('lives', beats)
    }
    await clock.advance(31_999)
    assert.equal(swept.length, 0)
    await clock.advance(1)
    assert.deepEqual(
      swept.map(([id, beats]) => [id, beats]),
      [['lives', 8]],
    )
  })

  it('is not watched while it belongs to this process, but from the time when it is given up', async () => {
    const { clock, open, own, swept } = sweeper()
    open.set('own', 1)
    own.add('own')
    await clock.advance(90_000)
    own.delete('own')
    await clock.advance(32_000)
    assert.deepEqual(swept, [])
    await clock.advance(3000)
    assert.equal(swept.length, 1)
  })

  it('is watched from the start again if it was missing in between', async () => {
    const { clock, open, swept } = sweeper()
    open.set('left', 1)
    await clock.advance(15_000)
    open.delete('left')
    await clock.advance(3000)
    open.set('left', 1)
    await clock.advance(30_000)
    assert.deepEqual(swept, [])
    await clock.advance(3000)
    assert.equal(swept.length, 1)
  })

  it('is neither counted nor logged if its owner renewed it at that moment', async () => {
    const { clock, logger, open, swept, world, sweeper: sweeping } = sweeper()
    open.set('renewed', 1)
    world.onSweep = () => false
    await clock.advance(33_000)
    assert.deepEqual([swept.length, sweeping.swept, logger.lines], [1, 0, []])
    await clock.advance(30_000)
    assert.equal(swept.length, 1, 'it is watched anew')
    await clock.advance(3000)
    assert.equal(swept.length, 2)
  })

  it('is watched from the start again after two checks more than five seconds apart', async () => {
    for (const [stopped, sweeps] of [
      [2000, true],
      [2001, false],
    ] as const) {
      const { clock, open, swept } = sweeper()
      open.set('left', 1)
      await clock.advance(30_000)
      clock.stopFor(3000 + stopped)
      await clock.advance(0)
      assert.equal(swept.length > 0, sweeps, `stopped for ${stopped} ms beyond the next look`)
      await clock.advance(29_000)
      assert.equal(swept.length > 0, sweeps)
      await clock.advance(1000)
      assert.equal(swept.length, 1)
    }
  })

  it('is left to other processes while enough of them watch, and is watched when they do not', async () => {
    const { clock, open, swept, world } = sweeper()
    open.set('left', 1)
    await clock.advance(15_000)
    world.areEnough = true
    await clock.advance(3000)
    world.areEnough = false
    await clock.advance(30_000)
    assert.deepEqual(swept, [])
    await clock.advance(3000)
    assert.equal(swept.length, 1)
  })

  it('is watched from the start again after a check of more than five seconds', async () => {
    for (const [took, sweeps] of [
      [5000, true],
      [5001, false],
    ] as const) {
      const { clock, open, swept, world } = sweeper()
      open.set('left', 1)
      await clock.advance(32_000)
      let listed = () => {}
      world.listing = new Promise((resolve) => {
        listed = resolve
      })
      await clock.advance(1000)
      await clock.advance(took)
      listed()
      await turns()
      assert.equal(swept.length > 0, sweeps, `a look of ${took} ms`)
    }
  })

  it('is watched from the start again after a failed check; the second failure in a row is logged, once', async () => {
    const { clock, logger, open, swept, world } = sweeper()
    open.set('left', 1)
    await clock.advance(15_000)
    world.fails = true
    await clock.advance(3000)
    assert.deepEqual(logger.lines, [])
    await clock.advance(9000)
    assert.deepEqual(
      logger.lines.map(({ level, message, fields }) => [level, message, fields]),
      [['warn', 'leases cannot be watched', { err: DOWN }]],
    )
    world.fails = false
    await clock.advance(32_000)
    assert.deepEqual(swept, [])
    await clock.advance(3000)
    assert.equal(swept.length, 1)
    world.fails = true
    await clock.advance(3000)
    assert.equal(logger.lines.filter(({ message }) => message === 'leases cannot be watched').length, 1)
    await clock.advance(3000)
    assert.equal(logger.lines.filter(({ message }) => message === 'leases cannot be watched').length, 2)
  })

  it('is returned in time although others were locked, alone or together, which are retried', async () => {
    for (const others of [['locked'], ['locked', 'locked-too', 'locked-as-well'], ['locked', 'broken']]) {
      const { clock, logger, open, world, ids } = sweeper()
      for (const id of others) open.set(id, 1)
      world.onSweep = (id) => {
        if (id === 'left') return true
        throw id === 'broken' ? DOWN : new WalletsLocked(new Set(['account:acme']))
      }
      await clock.advance(15_000)
      open.set('left', 1)
      await clock.advance(33_000)
      assert.deepEqual([ids().includes('left'), open.has('left')], [true, false])
      assert.ok(logger.lines.every(({ message }) => message === 'a lease that nobody renewed was returned'))
      world.onSweep = () => true
      await clock.advance(3000)
      assert.equal(open.size, 0)
    }
  })

  it('is not logged as unobserved while the ledger is known to be away', async () => {
    const { clock, logger, health, world } = sweeper()
    health.late()
    world.fails = true
    await clock.advance(12_000)
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      ['store is away'],
    )
  })
})

describe('many leases without renewals', () => {
  const left = (count: number) => Array.from({ length: count }, (_, i) => `left-${i}`)

  it('are returned in batches of 250, one after the other', async () => {
    const { clock, open, world, ids } = sweeper()
    for (const id of left(600)) open.set(id, 1)
    let done: (() => void)[] = []
    world.onSweep = () => new Promise((resolve) => done.push(() => resolve(true)))
    await clock.advance(33_000)
    const counts = [ids().length]
    for (let round = 0; round < 3; round++) {
      const now = done
      done = []
      for (const each of now) each()
      await turns()
      counts.push(ids().length)
    }
    assert.deepEqual(counts, [250, 500, 600, 600])
    assert.deepEqual(ids(), left(600))
  })

  it('are returned for a second at a time; the others after another check of their renewals', async () => {
    const { clock, open, world, ids, sweeper: sweeping } = sweeper()
    for (const id of left(600)) open.set(id, 1)
    let taking = 50
    world.onSweep = async (id) => {
      if (id.endsWith('0')) clock.stopFor(taking)
      return true
    }
    // Of the first 250, 25 take a twentieth of a second each.
    await clock.advance(33_000)
    assert.equal(ids().length, 250)
    taking = 0
    await clock.advance(2000)
    assert.deepEqual([ids().length, sweeping.swept], [600, 600])
  })

  it('are not returned after close', async () => {
    const { clock, open, world, ids, sweeper: sweeping } = sweeper()
    for (const id of left(600)) open.set(id, 1)
    world.onSweep = () => {
      sweeping.close()
      return true
    }
    await clock.advance(90_000)
    assert.deepEqual([ids().length, world.polls.at(-1)], [250, 33_000])
  })
})
