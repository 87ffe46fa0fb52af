import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, keyWallet } from '../../lib/ledger/index.ts'
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
  take,
  voidOf,
} from './ledger-money.ts'

const LARGEST = 2n ** 63n - 1n

/** The contract of a ledger for the people who run the service. */
export function adminContract(tested: () => LedgerUnderTest): void {
  const first = () => tested().ledgers[0]

  describe('the administration of a ledger', () => {
    it('a deposit counts once per reference, and another amount under it is a conflict', async () => {
      const account = fresh('acme')
      assert.equal(await first().deposit(account, 70n, 'bill 1', 1), 'deposited')
      for (const ledger of tested().ledgers) {
        assert.equal(await ledger.deposit(account, 70n, 'bill 1', 2), 'known')
        assert.equal(await ledger.deposit(account, 71n, 'bill 1', 3), 'conflict')
      }
      assert.equal(await first().deposit(account, 30n, 'bill 2', 4), 'deposited')
      assert.equal(await first().deposit(fresh('acme'), 5n, 'bill 1', 5), 'deposited')
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })

    it('a deposit for an unknown account opens a prepaid one, and leaves a postpaid one postpaid', async () => {
      assert.equal((await statement(first(), accountWallet(await prepaid(first(), 5n)))).limited, true)
      const postpaid = fresh('acme')
      await first().setLimit(accountWallet(postpaid), { limited: false })
      await first().deposit(postpaid, 5n, 'gift', 1)
      const { limited, funds } = await statement(first(), accountWallet(postpaid))
      assert.deepEqual([limited, funds], [false, 5n])
    })

    it('concurrent requests for the same deposit make it once', async () => {
      const account = fresh('acme')
      const { ledgers } = tested()
      const results = await Promise.all(
        Array.from({ length: 60 }, (_, i) =>
          (ledgers[i % ledgers.length] ?? first()).deposit(account, i % 3 === 0 ? 8n : 7n, 'bill', i),
        ),
      )
      assert.equal(results.filter((result) => result === 'deposited').length, 1)
      const [funds] = await figures(first(), account)
      assert.equal(results.filter((result) => result === 'conflict').length, funds === 8n ? 40 : 20)
      await assertSound(first())
    })

    it('a deposit beyond 64 bits is refused, and the balance remains', async () => {
      const account = await prepaid(first(), LARGEST - 5n)
      await assert.rejects(first().deposit(account, 6n, 'more', 1), RangeError)
      await assert.rejects(first().deposit(account, LARGEST + 1n, 'much more', 1), RangeError)
      assert.deepEqual(await figures(first(), account), [LARGEST - 5n, 0n, 0n, 0n])
      assert.equal(await first().deposit(account, 5n, 'more', 1), 'deposited')
      const nobody = fresh('acme')
      await assert.rejects(first().deposit(nobody, -LARGEST - 1n, 'x', 1), RangeError)
      assert.deepEqual(await first().wallets([accountWallet(nobody)]), [])
      await assertSound(first())
    })

    it('amounts are exact to the last of 64 bits, and their sums beyond', async () => {
      const account = await prepaid(first(), LARGEST)
      await prepaid(first(), LARGEST)
      await first().settle([charge(account, 9_007_199_254_740_993n)])
      const [answer] = await first().change('p', [take(fresh('lease'), accountWallet(account), LARGEST / 2n)])
      assert.equal(answer?.moved, LARGEST / 2n)
      assert.deepEqual(await figures(first(), account), [LARGEST, 9_007_199_254_740_993n, LARGEST / 2n, 0n])
      const { violations, deposited } = await first().check()
      assert.deepEqual(violations, [])
      assert.ok(deposited > 2n * LARGEST - 100n)
    })

    it('intermediate sums of deposits and of undone charges may exceed 64 bits', async () => {
      const account = fresh('acme')
      await first().deposit(account, LARGEST, 'a', 1)
      // The references sort otherwise than the deposits were made.
      await first().deposit(account, -LARGEST, 'c', 2)
      await first().deposit(account, LARGEST, 'b', 3)
      const undone = Array.from({ length: 3 }, () => charge(account, LARGEST - 10n))
      for (const each of undone) {
        await first().settle([each])
        await first().settle([voidOf(each)])
      }
      await first().settle([charge(account, 4n)])
      assert.deepEqual(await figures(first(), account), [LARGEST, 4n, 0n, 0n])
      await assertSound(first())
    })

    it('accounts and keys may have any names', async () => {
      const odd = fresh(`"it's" 100% {} \\u0000 \\\\ \u2400 \u24000 \u0001 \u00e9 \ud83d\ude00`)
      await first().deposit(odd, 100n, odd, 1)
      await first().setLimit(keyWallet(odd), { limited: true, quota: 50n })
      const [lease, requestId] = [fresh(odd), fresh(odd)]
      await first().change(odd, [take(lease, keyWallet(odd), 20n)])
      const once = charge(odd, 7n, {
        requestId,
        key: odd,
        basis: odd,
        draws: [draw(lease, keyWallet(odd), 5n)],
      })
      assert.deepEqual([...(await first().settle([once, once]))], ['written', 'known'])
      assert.deepEqual(await figures(first(), odd), [100n, 7n, 0n, 0n])
      assert.deepEqual(await figuresOf(first(), keyWallet(odd)), [50n, 7n, 15n, 0n])
      const found = (await first().leases()).find(({ id }) => id === lease)
      assert.deepEqual([found?.owner, found?.wallet], [odd, keyWallet(odd)])
      assert.deepEqual([...(await first().renew([lease], 1))], [lease])
      await assertSound(first())
    })

    it('a limit opens a wallet, and may be changed while money moves', async () => {
      const key = keyWallet(fresh('key'))
      await first().setLimit(key, { limited: true, quota: 50n })
      assert.deepEqual(await figuresOf(first(), key), [50n, 0n, 0n, 0n])
      const lease = await leaseOf(first(), key, 40n)
      await first().setLimit(key, { limited: false })
      assert.deepEqual(await statement(first(), key), {
        wallet: key,
        limited: false,
        funds: 50n,
        spent: 0n,
        leased: 40n,
        overrun: 0n,
      })
      const [more] = await first().change('p', [take(lease, key, 1n, { seq: 2 })])
      assert.equal(more?.moved, 0n)
      await first().setLimit(key, { limited: true, quota: 30n })
      const [none] = await first().change('p', [take(lease, key, 1n, { seq: 3 })])
      assert.deepEqual([none?.moved, none?.state?.leased, none?.state?.funds], [0n, 40n, 30n])
    })

    it('an account’s funds are not set, and a quota is an amount', async () => {
      const account = await prepaid(first(), 5n)
      const wallet = accountWallet(account)
      await assert.rejects(first().setLimit(wallet, { limited: true, quota: 9n }), TypeError)
      await assert.rejects(first().setLimit(keyWallet('k'), { limited: true, quota: -1n }), RangeError)
      await first().setLimit(wallet, { limited: false })
      assert.deepEqual(await figures(first(), account), [5n, 0n, 0n, 0n])
    })

    it('wallets are returned in the requested order, without unknown ones', async () => {
      const [one, other] = [await prepaid(first(), 1n), await prepaid(first(), 2n)]
      const key = keyWallet(await keyOf(first(), 3n))
      const asked = [accountWallet(other), key, accountWallet(fresh('nobody')), accountWallet(one)]
      const found = await first().wallets(asked)
      assert.deepEqual(
        found.map(({ wallet, funds }) => [wallet, funds]),
        [
          [asked[0], 2n],
          [key, 3n],
          [asked[3], 1n],
        ],
      )
      assert.deepEqual(await first().wallets([]), [])
    })

    it('a check adds up the deposits, charges and leases of all accounts', async () => {
      const before = await first().check()
      const account = await prepaid(first(), 1000n)
      const key = await keyOf(first(), 500n)
      await leaseOf(first(), accountWallet(account), 100n)
      await leaseOf(first(), keyWallet(key), 70n)
      const undone = charge(account, 9n, { key })
      await first().settle([charge(account, 30n, { key }), charge(account, 3n), undone, voidOf(undone)])
      const after = await first().check()
      assert.deepEqual(after, {
        violations: [],
        accounts: before.accounts + 1,
        charges: before.charges + 3,
        deposited: before.deposited + 1000n,
        spent: before.spent + 33n,
        leased: before.leased + 100n,
      })
    })
  })
}
