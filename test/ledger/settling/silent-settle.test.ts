import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, LeasePool, type Settlement } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { settle } from '../support/pool-process.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

const SILENT = ['mine', 'mine-too', 'mine-as-well']
const OTHERS = Array.from({ length: 20 }, (_, i) => `other-${i}`)

/** A pool over a ledger that takes a turn for each settlement, and gives no answer to those `isSilent` picks. */
async function poolOver(gathers: boolean) {
  const ledger = ledgerOf('1000')
  for (const account of [...SILENT, ...OTHERS]) await ledger.deposit(account, units(1000), 'opening', 1)
  const clock = new VirtualClock()
  const state = { isSilent: (_account: string): boolean => false, running: 0, most: 0 }
  const work = ledger.settle.bind(ledger)
  const late: (() => void)[] = []
  Object.assign(ledger, {
    gathers,
    settle: async (settlements: readonly Settlement[]) => {
      state.most = Math.max(state.most, ++state.running)
      // The same object is used again as a void.
      const given = settlements.map(({ account, ...others }) => ({ account, ...others }))
      await turns(2)
      if (given.some(({ account }) => state.isSilent(account)))
        await new Promise<void>((resolve) => late.push(resolve))
      state.running--
      return work(settlements)
    },
  })
  const pool = new LeasePool({ ledger, clock, logger: recordingLogger() })
  let made = 0
  /** Charges each account once, at the same time. Returns what becomes of each charge, and when. */
  const charge = async (accounts: readonly string[]) => {
    const asked = accounts.map((account) => pool.reserve({ account, key: null, amount: units(1) }))
    await clock.advance(0)
    const begun = clock.now()
    return (await Promise.all(asked)).map((held, i) => {
      const what = { account: accounts[i], outcome: 'waits', afterMs: 0 }
      if (!(held instanceof Reservation)) return { ...what, outcome: held.refused }
      void Promise.resolve(settle(held, `req-${++made}`, units(1)).outcome).then((outcome) => {
        Object.assign(what, { outcome, afterMs: clock.now() - begun })
      })
      return what
    })
  }
  const answerLate = (many = late.length) => {
    for (const answer of late.splice(0, many)) answer()
  }
  const spent = async (accounts: readonly string[]) =>
    (await ledger.wallets(accounts.map(accountWallet))).map((wallet) => Number(wallet.spent / units(1)))
  /** Lets time pass in small steps, so that what takes turns of the event loop takes little of it. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 10) await clock.advance(10)
  }
  return { pool, clock, pass, state, charge, answerLate, spent, ledger }
}

for (const gathers of [true, false]) {
  describe(`a ledger that never answers the charges of some accounts, and ${gathers ? 'gathers' : 'does not'}`, () => {
    for (const silent of [SILENT.slice(0, 1), SILENT]) {
      it(`delays no other, with ${silent.length} such accounts, even if they were sent together`, async () => {
        const { pool, clock, pass, state, charge, spent, ledger, answerLate } = await poolOver(gathers)
        await charge([...silent, ...OTHERS])
        await clock.advance(100)
        state.isSilent = (account) => silent.includes(account)

        const together = await charge([...OTHERS.slice(0, 10), ...silent, ...OTHERS.slice(10)])
        await pass(100)
        const behind = await charge(OTHERS)
        await pass(1500)
        for (const { account, outcome, afterMs } of [...together, ...behind]) {
          if (silent.includes(`${account}`)) continue
          assert.deepEqual([account, outcome], [account, 'confirmed'])
          assert.ok(afterMs <= 250 * silent.length + 100, `${account} waited ${afterMs} ms`)
        }
        assert.deepEqual([pool.away, pool.stats.outages], [false, 0])
        assert.ok(state.most <= 7, `${state.most} operations at the same time`)
        const own = await charge(silent)
        assert.ok(own.every(({ outcome }) => outcome === 'billing_unavailable'))
        // From then on nobody waits, however often the silent ones are tried again.
        for (let i = 0; i < 10; i++) {
          const later = await charge(OTHERS)
          await pass(100)
          await clock.advance(3000)
          for (const { outcome, afterMs } of later)
            assert.deepEqual([outcome, afterMs <= 50], ['confirmed', true])
        }

        state.isSilent = () => false
        answerLate()
        await clock.advance(70_000)
        assert.deepEqual([pool.stats.queued, pool.stats.setAside, pool.stats.lockedAccounts], [0, 0, 0])
        assert.deepEqual(
          await spent(silent),
          silent.map(() => 2),
        )
        assert.deepEqual(
          await spent(OTHERS),
          OTHERS.map(() => 13),
        )
        assert.deepEqual((await ledger.check()).violations, [])
        const [after] = await charge(silent)
        await clock.advance(100)
        assert.equal(after?.outcome, 'confirmed')
      })
    }

    it('is away if it answers none, and receives few requests until it answers', async () => {
      const { pool, clock, state, charge, spent, answerLate } = await poolOver(gathers)
      await charge(OTHERS)
      await clock.advance(100)
      state.isSilent = () => true
      const first = await charge(OTHERS)
      await clock.advance(600)
      assert.equal(pool.away, true)
      assert.equal((await charge(['acme']))[0]?.outcome === 'confirmed', false)
      await clock.advance(5000)
      assert.ok(state.most <= 8, `${state.most} operations at the same time`)
      assert.ok(first.every(({ outcome }) => outcome === 'unconfirmed'))
      state.isSilent = () => false
      answerLate()
      await clock.advance(30_000)
      assert.deepEqual([pool.away, pool.stats.queued, pool.stats.lockedAccounts], [false, 0, 0])
      assert.deepEqual(
        await spent(OTHERS),
        OTHERS.map(() => 2),
      )
    })

    it('has its late answer ignored if the charges were answered meanwhile', async () => {
      const { pool, clock, pass, state, charge, spent, answerLate } = await poolOver(gathers)
      await charge(['mine', ...OTHERS])
      await clock.advance(100)
      state.isSilent = (account) => account === 'mine'
      const [slow] = await charge(['mine', ...OTHERS])
      await clock.advance(100)
      state.isSilent = () => false
      await pass(600)
      assert.deepEqual([slow?.outcome, pool.stats.lockedAccounts], ['confirmed', 0])
      answerLate()
      await clock.advance(1000)
      assert.deepEqual([pool.stats.queuedBytes, pool.stats.queued], [0, 0])
      assert.deepEqual(await spent(['mine']), [2])
    })

    it('has its late answer accepted, once', async () => {
      const { pool, clock, state, charge, spent, answerLate } = await poolOver(gathers)
      await charge(['mine', ...OTHERS])
      await clock.advance(100)
      state.isSilent = () => true
      const slow = await charge(['mine', ...OTHERS])
      await clock.advance(400)
      state.isSilent = () => false
      answerLate()
      await clock.advance(2000)
      assert.ok(slow.every(({ outcome }) => outcome === 'confirmed'))
      assert.deepEqual([pool.away, pool.stats.queued, pool.stats.lockedAccounts], [false, 0, 0])
      assert.deepEqual(
        await spent(['mine', ...OTHERS]),
        ['mine', ...OTHERS].map(() => 2),
      )
    })
  })
}

describe('a ledger that has the charges of many accounts, and does not answer', () => {
  it('has its late answer accepted for accounts without a turn, which then need none', async () => {
    const { pool, clock, state, charge, spent, answerLate } = await poolOver(true)
    await charge(['acme', ...OTHERS])
    await clock.advance(100)
    state.isSilent = (account) => account !== 'acme'
    const slow = await charge(OTHERS)
    await clock.advance(100)
    await charge(['acme'])
    await clock.advance(200)
    assert.deepEqual([pool.stats.lockedAccounts, pool.away], [OTHERS.length, false])
    answerLate(1)
    await clock.advance(10)
    const confirmed = slow.filter(({ outcome }) => outcome === 'confirmed')
    assert.ok(confirmed.length >= OTHERS.length - 6, `${confirmed.length} confirmed`)
    state.isSilent = () => false
    answerLate()
    await clock.advance(5000)
    assert.deepEqual(
      await spent(OTHERS),
      OTHERS.map(() => 2),
    )
  })
})
