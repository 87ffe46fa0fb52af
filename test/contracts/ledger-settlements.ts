import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, keyWallet, type Settlement } from '../../lib/ledger/index.ts'
import {
  assertSound,
  charge,
  draw,
  figures,
  figuresOf,
  fresh,
  keyOf,
  type LedgerUnderTest,
  leaseOf,
  prepaid,
  statement,
  voidOf,
} from './ledger-money.ts'

/** The contract of a ledger for charges and voids. */
export function settlementsContract(tested: () => LedgerUnderTest): void {
  const first = () => tested().ledgers[0]
  const settle = async (...settlements: Settlement[]) => [...(await first().settle(settlements))]

  describe('settlements', () => {
    it('a charge is spent by account and key, and drawn from the leases up to the hold', async () => {
      const account = await prepaid(first(), 1000n)
      const key = await keyOf(first(), 500n)
      const wallets = [accountWallet(account), keyWallet(key)] as const
      const held = await leaseOf(first(), wallets[0], 100n)
      const quota = await leaseOf(first(), wallets[1], 100n)
      const draws = [draw(held, wallets[0], 40n), draw(quota, wallets[1], 30n)]
      assert.deepEqual(await settle(charge(account, 50n, { key, draws })), ['written'])
      assert.deepEqual(await figuresOf(first(), wallets[0]), [1000n, 50n, 60n, 0n])
      assert.deepEqual(await figuresOf(first(), wallets[1]), [500n, 50n, 70n, 0n])
      const leases = await first().leases()
      assert.equal(leases.find(({ id }) => id === held)?.held, 60n)
      assert.equal(leases.find(({ id }) => id === quota)?.held, 70n)
    })

    it('a repeated settlement is known and moves nothing, in the same batch or another', async () => {
      const account = await prepaid(first(), 100n)
      const lease = await leaseOf(first(), accountWallet(account), 80n)
      const once = charge(account, 30n, { draws: [draw(lease, accountWallet(account), 20n)] })
      assert.deepEqual(await settle(once, { ...once, amount: 31n }, once), ['written', 'known', 'known'])
      for (const ledger of tested().ledgers) assert.deepEqual([...(await ledger.settle([once]))], ['known'])
      assert.deepEqual(await figures(first(), account), [100n, 30n, 60n, 0n])
    })

    it('a known settlement counts as nothing, with any total of the others', async () => {
      const account = await prepaid(first(), 100n)
      const [once, more] = [charge(account, 30n), charge(account, 7n)]
      await settle(once)
      assert.deepEqual(await settle({ ...once, amount: 2n ** 63n - 1n }, more), ['known', 'written'])
      assert.deepEqual(await figures(first(), account), [100n, 37n, 0n, 0n])
    })

    it('an account may be spent below zero, which it then owes', async () => {
      const account = await prepaid(first(), 10n)
      assert.deepEqual(await settle(charge(account, 25n)), ['written'])
      assert.deepEqual(await figures(first(), account), [10n, 25n, 0n, 0n])
    })

    it('an amount that a lease no longer holds is still spent, and counted as overrun', async () => {
      const account = await prepaid(first(), 1000n)
      const wallet = accountWallet(account)
      const swept = await leaseOf(first(), wallet, 100n)
      await first().sweep(swept, 1)
      const small = await leaseOf(first(), wallet, 10n)
      const others = await leaseOf(first(), accountWallet(await prepaid(first(), 1000n)), 100n)
      const results = await settle(
        charge(account, 40n, { draws: [draw(swept, wallet, 30n)] }),
        charge(account, 8n, { draws: [draw(small, wallet, 6n)] }),
        charge(account, 8n, { draws: [draw(small, wallet, 6n)] }),
        charge(account, 1n, { draws: [draw(others, wallet, 1n)] }),
        charge(account, 5n, { draws: [draw(fresh('lease'), wallet, 5n)] }),
      )
      assert.deepEqual(
        results,
        results.map(() => 'written'),
      )
      assert.deepEqual(await figures(first(), account), [1000n, 62n, 0n, 38n])
      const leases = await first().leases()
      assert.equal(leases.find(({ id }) => id === small)?.held, 0n)
      assert.equal(leases.find(({ id }) => id === others)?.held, 100n)
      await assertSound(first())
    })

    it('a charge opens missing wallets without a limit', async () => {
      const [account, key] = [fresh('acme'), fresh('key')]
      assert.deepEqual(await settle(charge(account, 7n, { key }), charge(account, 2n)), [
        'written',
        'written',
      ])
      const figures = { limited: false, funds: 0n, leased: 0n, overrun: 0n }
      assert.deepEqual(await statement(first(), accountWallet(account)), {
        wallet: accountWallet(account),
        ...figures,
        spent: 9n,
      })
      assert.deepEqual(await statement(first(), keyWallet(key)), {
        wallet: keyWallet(key),
        ...figures,
        spent: 7n,
      })
    })

    it('a void returns the amount to account and key, once, and does not change the leases', async () => {
      const account = await prepaid(first(), 100n)
      const key = await keyOf(first(), 100n)
      const lease = await leaseOf(first(), accountWallet(account), 50n)
      const undone = charge(account, 30n, { key, draws: [draw(lease, accountWallet(account), 30n)] })
      await settle(undone, charge(account, 5n, { key }))
      assert.deepEqual(await settle(voidOf(undone)), ['written'])
      assert.deepEqual(await settle(voidOf(undone), voidOf(undone)), ['known', 'known'])
      assert.deepEqual(await settle(undone), ['known'])
      assert.deepEqual(await figures(first(), account), [100n, 5n, 20n, 0n])
      assert.deepEqual(await figuresOf(first(), keyWallet(key)), [100n, 5n, 0n, 0n])
      await assertSound(first())
    })

    it('a void undoes the amount of the charge, not its own', async () => {
      const account = await prepaid(first(), 100n)
      const other = await prepaid(first(), 100n)
      const undone = charge(account, 30n, { key: await keyOf(first()) })
      await settle(undone)
      assert.deepEqual(await settle(voidOf(undone, { account: other, key: null, amount: 99n })), ['written'])
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
      assert.deepEqual(await figures(first(), other), [100n, 0n, 0n, 0n])
      await assertSound(first())
    })

    it('a void that precedes its charge prevents that charge', async () => {
      const account = await prepaid(first(), 100n)
      const never = charge(account, 30n)
      assert.deepEqual(await settle(voidOf(never)), ['written'])
      for (const ledger of tested().ledgers) {
        assert.deepEqual([...(await ledger.settle([never, voidOf(never)]))], ['known', 'known'])
      }
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })

    it('a void of an unknown account opens no wallet', async () => {
      const nobody = fresh('nobody')
      assert.deepEqual(await settle(voidOf(charge(nobody, 1n))), ['written'])
      assert.deepEqual(await first().wallets([accountWallet(nobody)]), [])
    })

    it('charges and voids of one call in one batch are applied in order', async () => {
      const account = await prepaid(first(), 100n)
      const [one, other] = [charge(account, 10n), charge(account, 7n)]
      assert.deepEqual(await settle(one, voidOf(other), voidOf(one), other, one, charge(account, 1n)), [
        'written',
        'written',
        'written',
        'known',
        'known',
        'written',
      ])
      assert.deepEqual(await figures(first(), account), [100n, 1n, 0n, 0n])
      await assertSound(first())
    })

    it('a batch of 500 is settled whole, and so is an empty one', async () => {
      const account = await prepaid(first(), 10_000n)
      const lease = await leaseOf(first(), accountWallet(account), 1000n)
      const draws = [draw(lease, accountWallet(account), 2n)]
      const batch = Array.from({ length: 500 }, (_, i) =>
        charge(account, 3n, { draws, key: i % 2 === 0 ? `${account}_k${i % 7}` : null }),
      )
      assert.deepEqual(
        await settle(...batch),
        batch.map(() => 'written'),
      )
      assert.deepEqual(await figures(first(), account), [10_000n, 1500n, 0n, 0n])
      assert.deepEqual(await settle(), [])
      await assertSound(first())
    })

    it('50 concurrent settlements of the same call charge it once', async () => {
      const account = await prepaid(first(), 1000n)
      const lease = await leaseOf(first(), accountWallet(account), 500n)
      const once = charge(account, 10n, { draws: [draw(lease, accountWallet(account), 10n)] })
      const { ledgers } = tested()
      const results = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => (ledgers[i % ledgers.length] ?? first()).settle([once])),
      )
      assert.equal(results.flat().filter((result) => result === 'written').length, 1)
      assert.equal(results.flat().filter((result) => result === 'known').length, 49)
      assert.deepEqual(await figures(first(), account), [1000n, 10n, 490n, 0n])
    })

    it('batches that overlap in any order never block each other', async () => {
      const accounts = await Promise.all([1, 2, 3].map(() => prepaid(first(), 10_000n)))
      const calls = accounts.flatMap((account) => Array.from({ length: 20 }, () => charge(account, 1n)))
      const { ledgers } = tested()
      const voided = calls.filter((_, i) => i % 5 === 0)
      const batches = Array.from({ length: 24 }, (_, i) => {
        const turned = [...calls.slice(i), ...calls.slice(0, i)]
        const batch = i % 2 === 0 ? turned : turned.reverse()
        return i % 3 === 0 ? [...batch, ...voided.map((call) => voidOf(call))] : batch
      })
      await Promise.all(
        batches.map(async (batch, i) => (ledgers[i % ledgers.length] ?? first()).settle(batch)),
      )
      for (const account of accounts)
        assert.deepEqual(await figures(first(), account), [10_000n, 16n, 0n, 0n])
      await assertSound(first())
    })

    it('an invalid amount prevents the whole batch', async () => {
      const account = await prepaid(first(), 100n)
      const wrong = [
        charge(account, -1n),
        charge(account, 2n ** 63n),
        charge(account, 1n, { draws: [draw('x', accountWallet(account), -1n)] }),
      ]
      for (const settlement of wrong) {
        await assert.rejects(async () => first().settle([charge(account, 1n), settlement]), RangeError)
      }
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })
  })
}
