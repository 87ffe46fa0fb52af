import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { LeasePool } from '../../../lib/ledger/pool/lease-pool.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { WalletsLocked } from '../../../lib/ledger/wallets-locked.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

const ONE = units(1)

describe('a call that waits for money', () => {
  it('is admitted on money that another call returns, before the ledger has answered', async () => {
    const process = new PoolProcess(ledgerOf('10', { k: '10' }))
    const held = await process.admitted(units(8), 'k')
    process.ledger.faults.set('change', 'waits')
    const waiting = process.pool.reserve({ account: 'acme', key: 'k', amount: units(5) })
    assert.ok(waiting instanceof Promise)
    await turns()
    assert.equal(process.pool.stats.waiting, 1)
    held.release()
    assert.ok((await waiting) instanceof Reservation)
    assert.equal(process.pool.stats.waiting, 0)
  })

  it('receives the amount that was available, of its key if that is limited', async () => {
    const shared = ledgerOf('100', { k: '10', free: null })
    const [one, other] = [new PoolProcess(shared), new PoolProcess(shared)]
    await one.admitted(units(7), 'k')
    assert.deepEqual(await other.reserve(units(4), 'k'), {
      refused: 'quota_lease_exhausted',
      required: units(4),
      available: units(3),
    })
    await one.admitted(units(80))
    assert.deepEqual(await other.reserve(units(50), 'free'), {
      refused: 'quota_lease_exhausted',
      required: units(50),
      available: units(13),
    })
  })

  it('is refused for an amount that its key or its account has spent, which is not returned', async () => {
    const process = new PoolProcess(ledgerOf('100', { k: '10' }))
    await settle(await process.admitted(units(8), 'k'), 'one', units(8)).outcome
    assert.deepEqual(await process.reserve(units(3), 'k'), {
      refused: 'key_quota_exhausted',
      required: units(3),
      available: units(2),
    })
    await settle(await process.admitted(units(80)), 'two', units(80)).outcome
    assert.deepEqual(await process.reserve(units(13)), {
      refused: 'insufficient_balance',
      required: units(13),
      available: units(12),
    })
    await process.admitted(units(12))
  })

  it('is refused for charges that were not yet sent to the ledger', async () => {
    const process = new PoolProcess(ledgerOf('10'))
    const [one, two] = [await process.admitted(units(4)), await process.admitted(units(4))]
    process.ledger.faults.set('settle', 'waits')
    settle(one, 'flies', units(4))
    settle(two, 'waits', units(4))
    assert.deepEqual(await process.reserve(units(7)), {
      refused: 'insufficient_balance',
      required: units(7),
      available: units(6),
    })
  })

  it('is not refused for voids of written charges that are still queued', async () => {
    const shared = ledgerOf('10', { k: '10' })
    const process = new PoolProcess(shared, { gathers: true })
    for (const name of ['one', 'two', 'three', 'four']) {
      const held = await process.admitted(units(4), 'k')
      await settle(held, name, units(4)).outcome
      assert.equal(held.revoke(null), 'queued')
      await process.clock.advance(2000)
    }
    assert.equal((await shared.wallets(['account:acme']))[0]?.spent, 0n)
    assert.deepEqual(await process.reserve(units(11), 'k'), {
      refused: 'key_quota_exhausted',
      required: units(11),
      available: units(10),
    })
    assert.equal(process.pool.seemsEmpty({ account: 'acme', key: 'k' }), false)
    await process.clock.advance(60_000)
    assert.equal(process.pool.stats.wallets, 0, 'wallets that nobody uses are forgotten')
  })

  it('is refused after the maximum wait of a call, and not admitted after that', async () => {
    const process = new PoolProcess(ledgerOf('10'), { admissionMs: 300 })
    process.ledger.faults.set('change', 'waits')
    const answers: unknown[] = []
    void Promise.resolve(process.pool.reserve({ account: 'acme', key: null, amount: ONE })).then((answer) =>
      answers.push(answer),
    )
    await process.clock.advance(299)
    assert.deepEqual(answers, [])
    await process.clock.advance(1)
    assert.deepEqual(answers, [{ refused: 'billing_unavailable', required: ONE, available: null }])
    process.ledger.mend()
    await process.clock.advance(11_000)
    assert.deepEqual([answers.length, process.pool.stats.waiting], [1, 0])
  })

  it('requests no more money after it was refused', async () => {
    const process = new PoolProcess(ledgerOf('100', { k: '1000' }), { admissionMs: 700 })
    const { ledger, pool, clock } = process
    const whole = ledger.change.bind(ledger)
    // The account's rows are locked, the key's are not.
    ledger.change = (owner, changes) =>
      changes.some(({ wallet }) => wallet === 'account:acme')
        ? Promise.reject(new WalletsLocked(new Set(['account:acme'])))
        : whole(owner, changes)
    const needs = () =>
      ledger.changes.flat().map(({ change }) => (change.kind === 'take' ? change.need : undefined))
    const given = pool.reserve({ account: 'acme', key: 'k', amount: units(5) })
    await clock.advance(701)
    assert.equal('refused' in (await given), true)
    assert.deepEqual(needs(), [units(5)])
    void pool.reserve({ account: 'acme', key: 'k', amount: units(200) })
    await turns(20)
    assert.deepEqual(needs(), [units(5), units(195)])
  })

  it('is served in turn by its key: one call of each, then the next of each', async () => {
    const process = new PoolProcess(ledgerOf('1000', { a: null, b: null }))
    process.ledger.faults.set('change', 'waits')
    const order: string[] = []
    for (const [name, key] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['b2', 'b'],
    ] as const)
      void Promise.resolve(process.pool.reserve({ account: 'acme', key, amount: ONE })).then(() =>
        order.push(name),
      )
    await turns()
    process.ledger.mend()
    await turns(20)
    assert.deepEqual(order, ['a1', 'b1', 'a2', 'b2'])
  })

  it('is served after other keys if its own key was served first last time, without success', async () => {
    const { pool, ledger } = new PoolProcess(ledgerOf('10', { a: null, b: null }))
    const answers: ((moved: bigint) => void)[] = []
    const state = { limited: true, funds: units(10), spent: 0n, leased: units(8) }
    ledger.change = (_owner, changes) =>
      new Promise((resolve) => {
        answers.push((moved) => {
          const isOfKey = (wallet: string) => wallet.startsWith('key:')
          const unlimited = { ...state, limited: false }
          resolve(
            changes.map(({ wallet }) => ({
              ...{ moved: isOfKey(wallet) ? 0n : moved, lost: false, open: true },
              state: isOfKey(wallet) ? unlimited : state,
            })),
          )
        })
      })
    const order: string[] = []
    for (const key of ['a', 'b'])
      void Promise.resolve(pool.reserve({ account: 'acme', key, amount: ONE })).then(() => order.push(key))
    for (const moved of [0n, ONE]) {
      await turns()
      answers.shift()?.(moved)
    }
    await turns()
    assert.deepEqual(order, ['b'])
  })
})

describe('a key with a quota on an account without limits', () => {
  it('pays only from its own lease', async () => {
    const shared = ledgerOf(undefined, { k: '10' })
    const process = new PoolProcess(shared)
    const held = await process.admitted(units(4), 'k')
    await settle(held, 'req', units(3)).outcome
    const draws = process.ledger.settled.flat().map((settlement) => settlement.draws)
    assert.deepEqual(
      draws.map((each) => each.map(({ wallet, amount }) => [wallet, amount])),
      [[['key:k', units(3)]]],
    )
    const [account, key] = await shared.wallets(['account:acme', 'key:k'])
    assert.deepEqual([account?.spent, account?.leased, account?.overrun], [units(3), 0n, 0n])
    assert.deepEqual([key?.spent, key?.overrun], [units(3), 0n])
    assert.deepEqual((await shared.check()).violations, [])
  })
})

describe('an invalid claim', () => {
  it('is refused with its fault', () => {
    const { pool } = new PoolProcess(ledgerOf('10'))
    const claim = { account: 'acme', key: null, amount: ONE }
    const wrong = (members: object, name: string, message: RegExp) =>
      assert.throws(() => pool.reserve({ ...claim, ...members }), { name, message })
    wrong({ amount: -1n }, 'RangeError', /a call cannot cost -1 nano-units/)
    wrong({ amount: -1n, key: 'k' }, 'RangeError', /a call cannot cost -1 nano-units/)
    wrong({ amount: 1 }, 'TypeError', /must be a bigint of nano-units, and is 1/)
    for (const account of ['', null]) wrong({ account }, 'TypeError', /the account that pays must be named/)
    wrong({ key: undefined }, 'TypeError', /must be a text or null, and is undefined/)
    assert.deepEqual(pool.stats.wallets, 0)
    assert.ok(pool.reserve({ ...claim, amount: 0n }) instanceof Reservation, 'but a call may cost nothing')
  })
})

describe('a pool that closes', () => {
  it('keeps its process alive until then, and no longer than its limit', async () => {
    const clock = new VirtualClock()
    const timers: [ms: number, keepsAlive: boolean | undefined][] = []
    const after = clock.after.bind(clock)
    clock.after = (ms: number, run: () => void, keepsAlive?: boolean) => {
      timers.push([ms, keepsAlive])
      return after(ms, run)
    }
    const process = new PoolProcess(ledgerOf('10'), { clock })
    const held = await process.admitted(ONE)
    process.ledger.faults.set('settle', 'waits')
    settle(held, 'req', ONE)
    timers.length = 0
    let closed = false
    const closing = process.pool.close(700).then(() => {
      closed = true
    })
    assert.deepEqual(timers[0], [700, true])
    await clock.advance(699)
    assert.equal(closed, false)
    await clock.advance(1)
    await closing
    assert.deepEqual(
      process.messages.filter((message) => message.startsWith('a settlement is not confirmed')).length,
      1,
    )
    const other = new PoolProcess(ledgerOf('10'))
    await other.pool.close()
    assert.deepEqual(other.messages, [])
  })
})

describe('a key that the ledger does not know', () => {
  it('has no quota: its calls are limited only by the account, and charged to both', async () => {
    const shared = ledgerOf('10')
    const process = new PoolProcess(shared)
    await settle(await process.admitted(units(8), 'stranger'), 'one', units(8)).outcome
    assert.deepEqual(await process.reserve(units(3), 'stranger'), {
      refused: 'insufficient_balance',
      required: units(3),
      available: units(2),
    })
    await settle(await process.admitted(units(2), 'stranger'), 'two', units(2)).outcome
    const spent = (await shared.wallets(['account:acme', 'key:stranger'])).map((wallet) => wallet.spent)
    assert.deepEqual([spent, (await shared.check()).violations], [[units(10), units(10)], []])
    assert.deepEqual(process.messages, [])
  })
})

describe('an account that the ledger does not know', () => {
  it('is refused, and the log contains the remedy once', async () => {
    const process = new PoolProcess(new MemoryLedger())
    for (let times = 0; times < 3; times++) {
      const answer = await process.reserve(units(1), 'k')
      assert.deepEqual(answer, { refused: 'insufficient_balance', required: units(1), available: 0n })
    }
    assert.equal(process.messages.length, 1)
    assert.match(process.messages[0] as string, /does not know this account.*new MemoryLedger\(\{ accounts/)
  })

  it('causes no warning once it is known, for any amount it has spent', async () => {
    const process = new PoolProcess(ledgerOf('1'))
    assert.equal(((await process.reserve(units(2))) as { refused?: string }).refused, 'insufficient_balance')
    assert.deepEqual(process.messages, [])
  })
})

describe('an account that a ledger in memory was not given', () => {
  it('has spent nothing, and has no limits, if such accounts are served', async () => {
    const ledger = new MemoryLedger({ unknownAccounts: 'postpaid' })
    const change = { kind: 'take', need: 1n, want: 1n } as const
    const [answer] = await ledger.change('p', [{ lease: 'l', wallet: 'account:acme', seq: 1, change }])
    const state = { limited: false, funds: 0n, spent: 0n, leased: 0n }
    assert.deepEqual(answer, { moved: 0n, lost: false, open: false, state })
    const pool = new LeasePool({ ledger, clock: new VirtualClock() })
    assert.ok((await pool.reserve({ account: 'acme', key: null, amount: units(1e6) })) instanceof Reservation)
    await pool.close()
  })
})
