import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, keyWallet, MemoryLedger, type WalletId } from '../../lib/ledger/index.ts'
import { configWith } from '../core/config/config.ts'
import { loadConfig } from '../support/any-config.ts'
import { ledgerContract } from './ledger.ts'
import { assertSound, charge, fresh, leaseOf, take, voidOf } from './ledger-money.ts'

ledgerContract('memory', async () => ({ ledgers: [new MemoryLedger()], close: async () => {} }))

ledgerContract('memory, a few charges remembered', async () => ({
  ledgers: [new MemoryLedger({ maxCharges: 600 })],
  close: async () => {},
}))

describe('a ledger in memory', () => {
  it('opens with the accounts and keys of a config', async () => {
    const config = configWith({
      accounts: [{ id: 'acme', balance: '25.000000001' }, { id: 'globex' }],
      keys: [
        { id: 'k1', account: 'acme', secret: 'sk-1', quota: '5' },
        { id: 'k2', account: 'globex', secret: 'sk-2' },
      ],
    })
    const ledger = new MemoryLedger(loadConfig(config))
    const wallets = await ledger.wallets([
      accountWallet('acme'),
      accountWallet('globex'),
      keyWallet('k1'),
      keyWallet('k2'),
    ])
    assert.deepEqual(
      wallets.map(({ limited, funds }) => [limited, funds]),
      [
        [true, 25_000_000_001n],
        [false, 0n],
        [true, 5_000_000_000n],
        [false, 0n],
      ],
    )
    assert.equal(await ledger.deposit('acme', 25_000_000_001n, 'opening', 1), 'known')
    await assertSound(ledger)
  })

  it('settles synchronously', () => {
    const results = new MemoryLedger().settle([charge('acme', 5n)])
    assert.deepEqual(results, ['written'])
  })

  it('serves unknown accounts only if that is configured', async () => {
    const changes = [
      take(fresh('lease'), accountWallet('acme'), 5n),
      take(fresh('lease'), keyWallet('k'), 5n),
    ]
    const states = async (ledger: MemoryLedger) =>
      (await ledger.change('p', changes)).map(({ state }) => state?.limited)
    assert.deepEqual(await states(new MemoryLedger()), [undefined, undefined])
    const postpaid = new MemoryLedger({ unknownAccounts: 'postpaid' })
    assert.deepEqual(await states(postpaid), [false, false])
    await postpaid.deposit('acme', 5n, 'gift', 1)
    assert.deepEqual(await states(postpaid), [false, false])
  })

  it('remembers as many charges as configured, and the sums of all charges', async () => {
    const ledger = new MemoryLedger({ maxCharges: 6 })
    const calls = Array.from({ length: 7 }, (_, i) => charge('acme', BigInt(i + 1), { key: 'k' }))
    for (const [i, call] of calls.entries()) {
      ledger.settle([call])
      if (i % 2 === 1) ledger.settle([voidOf(call)])
    }
    assert.deepEqual(ledger.settle(calls.slice(4)), ['known', 'known', 'known'])
    const { violations, charges, spent } = await ledger.check()
    assert.deepEqual([violations, charges, spent], [[], 7, 16n])
    // The bound has a price: a charge that is forgotten can be written again.
    assert.deepEqual(ledger.settle(calls.slice(0, 1)), ['written'])
  })

  it('keeps the sums of older charges separate for their budgets', async () => {
    const ledger = new MemoryLedger({ maxCharges: 2 })
    const some: WalletId[] = ['budget:team:0', 'budget:user:0']
    for (const budgets of [undefined, some, some.slice(1), some, undefined])
      ledger.settle([charge('acme', 5n, { key: 'k', budgets })])
    const { violations, charges, spent } = await ledger.check()
    assert.deepEqual([violations, charges, spent], [[], 5, 25n])
    const wallets = await ledger.wallets(some)
    assert.deepEqual(
      wallets.map((wallet) => wallet.spent),
      [10n, 15n],
    )
  })

  it('remembers as many voids that preceded their charges as charges', async () => {
    const ledger = new MemoryLedger({ maxCharges: 2 })
    const calls = Array.from({ length: 3 }, () => charge('acme', 5n))
    ledger.settle(calls.map((call) => voidOf(call)))
    assert.deepEqual(ledger.settle(calls.slice(1)), ['known', 'known'])
    assert.deepEqual(ledger.settle(calls.slice(0, 1)), ['written'])
    const { violations, charges, spent } = await ledger.check()
    assert.deepEqual([violations, charges, spent], [[], 1, 5n])
  })

  it('forgets ended leases after ten minutes', async (t) => {
    t.mock.timers.enable({ apis: ['Date'] })
    const ledger = new MemoryLedger({ accounts: [{ id: 'acme', balance: '1' }] })
    const lease = await leaseOf(ledger, accountWallet('acme'), 5n)
    await ledger.sweep(lease, 1)
    const again = [take(lease, accountWallet('acme'), 5n)]
    t.mock.timers.tick(600_000)
    await ledger.renew([], Date.now())
    assert.equal((await ledger.change('p', again))[0]?.lost, true)
    t.mock.timers.tick(1)
    await ledger.renew([], Date.now())
    assert.equal((await ledger.change('p', again))[0]?.moved, 5n)
  })

  it('refuses invalid options', () => {
    assert.throws(() => new MemoryLedger({ maxCharges: 1 }), TypeError)
    assert.throws(() => new MemoryLedger({ unknownAccounts: 'other' as 'refuse' }), TypeError)
    assert.throws(() => new MemoryLedger({ accounts: [{ id: 'acme', balance: 'much' }] }), RangeError)
  })
})
