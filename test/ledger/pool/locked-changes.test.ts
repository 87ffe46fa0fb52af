import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { LeaseChanges } from '../../../lib/ledger/pool/lease-changes.ts'
import type { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import type { WalletLease } from '../../../lib/ledger/pool/wallet-lease.ts'
import { WalletsLocked } from '../../../lib/ledger/wallets-locked.ts'
import { units } from '../support/faulty-ledger.ts'
import { PoolProcess } from '../support/pool-process.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

/** A process whose ledger cannot have the rows of some accounts while they are locked. */
function world({ accounts = ['acme', 'busy', 'calm'] } = {}) {
  const shared = new MemoryLedger({ accounts: accounts.map((id) => ({ id, balance: '100000000' })) })
  const process = new PoolProcess(shared)
  const { ledger, pool } = process
  const whole = ledger.change.bind(ledger)
  const locked = new Set<string>()
  const asked: string[][] = []
  ledger.change = (owner, changes) => {
    asked.push(changes.map(({ wallet }) => wallet))
    const wallets = new Set(changes.map(({ wallet }) => wallet).filter((wallet) => locked.has(wallet)))
    if (wallets.size === 0) return whole(owner, changes)
    return Promise.reject(new WalletsLocked(wallets))
  }
  const answers: Record<string, string> = {}
  /** Each asks for more than a lease has left of the one before. */
  let asks = 1
  return {
    ...{ process, locked, asked, answers },
    calls(...of: readonly string[]): void {
      asks++
      for (const account of of) {
        answers[account] = 'waits'
        const told = (held: unknown) => {
          answers[account] = held instanceof Reservation ? 'admitted' : 'refused'
        }
        const answer = pool.reserve({ account, key: null, amount: units(8 ** asks) })
        if (answer instanceof Promise) void answer.then(told)
        else told(answer)
      }
    },
  }
}

describe('a wallet whose rows are locked', () => {
  it('delays its own calls, not others, also when it is locked again', async () => {
    const { process, locked, answers, calls } = world()
    for (let times = 0; times < 3; times++) {
      locked.add('account:acme')
      calls('acme', 'busy', 'calm')
      await turns(20)
      assert.deepEqual(answers, { acme: 'waits', busy: 'admitted', calm: 'admitted' })
      await process.clock.advance(400)
      assert.equal(answers.acme, 'waits')
      locked.clear()
      await process.clock.advance(300)
      assert.equal(answers.acme, 'admitted')
    }
    assert.deepEqual([process.pool.away, process.pool.stats.outages], [false, 0])
    assert.deepEqual(process.messages, [])
  })

  it('is requested again after 300 ms, repeatedly', async () => {
    const { process, locked, asked, calls } = world()
    locked.add('account:acme')
    calls('acme')
    await turns(20)
    const seen = [asked.length]
    for (const pass of [299, 1, 299, 1]) {
      await process.clock.advance(pass)
      seen.push(asked.length)
    }
    assert.deepEqual(seen, [1, 1, 2, 2, 3])
  })

  it('is retried separately from others, which are requested together', async () => {
    const { process, locked, asked, calls } = world()
    locked.add('account:acme').add('account:busy')
    calls('acme', 'busy')
    await turns(20)
    asked.length = 0
    calls('calm')
    await turns(20)
    assert.deepEqual(asked, [['account:calm']])
    asked.length = 0
    locked.clear()
    await process.clock.advance(300)
    assert.deepEqual(asked[0], ['account:acme', 'account:busy'])
  })

  it('is retried together with one that is locked later, once each time', async () => {
    const { process, locked, asked, calls } = world()
    locked.add('account:acme').add('account:busy')
    calls('acme')
    await process.clock.advance(100)
    calls('busy')
    await turns(20)
    asked.length = 0
    await process.clock.advance(599)
    assert.deepEqual(asked, Array(2).fill(['account:acme', 'account:busy']))
  })

  it('continues while another that was locked with it is still locked', async () => {
    const { process, locked, answers, calls } = world()
    locked.add('account:acme').add('account:busy')
    calls('acme', 'busy')
    await process.clock.advance(100)
    locked.delete('account:busy')
    await process.clock.advance(500)
    assert.deepEqual(answers, { acme: 'waits', busy: 'admitted' })
  })

  it('is retried with any number of others, of which one operation takes only some', async () => {
    const accounts = Array.from({ length: 450 }, (_, i) => `a${i}`)
    const { process, locked, asked, answers, calls } = world({ accounts })
    for (const account of accounts) locked.add(`account:${account}`)
    calls(...accounts)
    await turns(20)
    assert.deepEqual(new Set(Object.values(answers)), new Set(['waits']))
    locked.clear()
    asked.length = 0
    await process.clock.advance(950)
    assert.deepEqual(new Set(Object.values(answers)), new Set(['admitted']))
    assert.equal(new Set(asked.flat()).size, accounts.length)
    assert.ok(Math.max(...asked.map(({ length }) => length)) <= 200)
  })

  it('that was answered with others meanwhile is not retried, and not delayed later', async () => {
    const clock = new VirtualClock()
    const asked: number[] = []
    let isLocked = true
    let due = true
    const wallet = {
      wallet: 'account:acme',
      nextChange: () => (due ? {} : undefined),
      answered: () => {
        due = false
      },
      admissions: { serve() {} },
    } as unknown as WalletLease
    const changes = new LeaseChanges({
      owner: 'us',
      clock,
      times: { admissionMs: 1000 },
      health: { late() {}, answered() {}, failed() {} } as unknown as LedgerHealth,
      ledger: {
        async change(_owner, { length }) {
          asked.push(length)
          if (!isLocked) return Array(length).fill({})
          isLocked = false
          // It is asked for again before it is known to be locked.
          changes.ask(wallet)
          throw new WalletsLocked(new Set([wallet.wallet]))
        },
      },
    })
    changes.ask(wallet)
    await turns(20)
    assert.deepEqual(asked, [1, 1])
    await clock.advance(400)
    assert.deepEqual(asked, [1, 1], 'nothing is due')
    due = true
    changes.ask(wallet)
    await turns(20)
    assert.deepEqual(asked, [1, 1, 1])
  })

  it('has its calls refused after a while, and is only retried occasionally', async () => {
    const { process, locked, answers, calls, asked } = world()
    locked.add('account:acme')
    calls('acme')
    await process.clock.advance(1100)
    assert.equal(answers.acme, 'refused')
    assert.ok(asked.length < 20, `asked ${asked.length} times`)
    locked.clear()
    await process.clock.advance(500)
    calls('acme')
    await turns(20)
    assert.equal(answers.acme, 'admitted')
  })
})
