import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, keyWallet, type WalletId } from '../../lib/ledger/index.ts'
import {
  assertSound,
  charge,
  draw,
  figures,
  fresh,
  give,
  keyOf,
  type LedgerUnderTest,
  leaseOf,
  prepaid,
  statement,
  take,
} from './ledger-money.ts'

/** The contract of a ledger for the leases of processes. */
export function leasesContract(tested: () => LedgerUnderTest): void {
  const first = () => tested().ledgers[0]
  const openLease = async (id: string) => (await first().leases()).find((lease) => lease.id === id)

  describe('leases', () => {
    const sizes: [funds: bigint, need: bigint, want: bigint, moved: bigint][] = [
      [1000n, 1n, 50n, 50n],
      [1000n, 1n, 100n, 100n],
      [1000n, 1n, 101n, 100n],
      [1000n, 300n, 900n, 300n],
      [1000n, 1000n, 1000n, 1000n],
      [1000n, 1001n, 1001n, 0n],
      [9n, 1n, 9n, 1n],
      [0n, 1n, 1n, 0n],
      [-5n, 0n, 10n, 0n],
    ]
    for (const [funds, need, want, moved] of sizes) {
      it(`of ${funds} available, a take that needs ${need} and wants ${want} gets ${moved}`, async () => {
        const wallet = accountWallet(await prepaid(first(), funds))
        const [answer] = await first().change('p', [take(fresh('lease'), wallet, need, { want })])
        assert.deepEqual(answer, {
          moved,
          lost: false,
          open: moved > 0n,
          state: { limited: true, funds, spent: 0n, leased: moved },
        })
      })
    }

    it('money that is spent or held by others is not available', async () => {
      const account = await prepaid(first(), 1000n)
      await first().settle([charge(account, 500n)])
      await leaseOf(first(), accountWallet(account), 300n)
      const lease = fresh('lease')
      const asked = (need: bigint) => first().change('q', [take(lease, accountWallet(account), need)])
      assert.equal((await asked(201n))[0]?.moved, 0n)
      assert.equal((await asked(200n))[0]?.moved, 200n)
      assert.deepEqual(await figures(first(), account), [1000n, 500n, 500n, 0n])
    })

    it('a take without a result opens nothing, and its number may be used again', async () => {
      const account = await prepaid(first(), 10n)
      const lease = fresh('lease')
      assert.equal((await first().change('p', [take(lease, accountWallet(account), 11n)]))[0]?.moved, 0n)
      assert.equal(await openLease(lease), undefined)
      await first().deposit(account, 1n, 'more', 2)
      assert.equal((await first().change('p', [take(lease, accountWallet(account), 11n)]))[0]?.moved, 11n)
    })

    it('a take from an unlimited wallet holds nothing', async () => {
      const key = keyWallet(await keyOf(first()))
      const lease = fresh('lease')
      const [answer] = await first().change('p', [take(lease, key, 5n)])
      assert.deepEqual(answer, {
        moved: 0n,
        lost: false,
        open: false,
        state: { limited: false, funds: 0n, spent: 0n, leased: 0n },
      })
      assert.equal(await openLease(lease), undefined)
    })

    it('a missing wallet has no state, and is not opened by a read', async () => {
      const wallet = accountWallet(fresh('nobody'))
      const answer = await first().change('p', [take(fresh('lease'), wallet, 5n)])
      assert.deepEqual(answer, [{ moved: 0n, lost: false, open: false, state: undefined }])
      assert.deepEqual(await first().wallets([wallet]), [])
    })

    it('each change of a batch is made separately, in order', async () => {
      const wallet = accountWallet(await prepaid(first(), 100n))
      const quota = keyWallet(await keyOf(first(), 30n))
      const [one, other] = [fresh('lease'), fresh('lease')]
      const answers = await first().change('p', [
        take(other, quota, 20n),
        take(one, wallet, 60n),
        take(fresh('lease'), wallet, 60n),
        give(one, wallet, 50n),
        take(fresh('lease'), wallet, 60n),
        take(fresh('lease'), accountWallet(fresh('nobody')), 1n),
      ])
      assert.deepEqual(
        answers.map(({ moved }) => moved),
        [20n, 60n, 0n, 50n, 60n, 0n],
      )
      assert.equal(answers[4]?.state?.leased, 70n)
      assert.deepEqual(await first().change('p', []), [])
    })

    it('a returned lease is available again, and no more than its amount is returned', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const lease = await leaseOf(first(), wallet, 60n)
      assert.equal((await first().change('p', [give(lease, wallet, 20n)]))[0]?.moved, 20n)
      assert.deepEqual(await figures(first(), account), [100n, 0n, 40n, 0n])
      const [answer] = await first().change('p', [give(lease, wallet, 41n, 3)])
      assert.deepEqual([answer?.moved, answer?.state?.leased], [40n, 0n])
      assert.equal(await openLease(lease), undefined)
    })

    it('a repeated change, also by another handle, returns its first result and moves nothing', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const lease = fresh('lease')
      const changes = [
        take(lease, wallet, 50n),
        take(lease, wallet, 10n, { seq: 2 }),
        give(lease, wallet, 45n, 3),
        take(lease, wallet, 90n, { seq: 4 }),
        give(lease, wallet, 15n, 5),
      ]
      for (const change of changes) {
        const [answer] = await first().change('p', [change])
        const stands = await figures(first(), account)
        const beats = (await openLease(lease))?.beats
        assert.equal(answer?.open, beats !== undefined)
        for (const ledger of tested().ledgers) {
          assert.deepEqual(await ledger.change('p', [change, change]), [answer, answer])
        }
        assert.deepEqual(await figures(first(), account), stands)
        assert.equal((await openLease(lease))?.beats, beats)
      }
      // One that was long under way, when others came after it.
      assert.equal((await first().change('p', [changes[0] as never]))[0]?.moved, 0n)
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })

    it('a change of a lost lease reports that and moves nothing', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const swept = await leaseOf(first(), wallet, 50n)
      assert.equal(await first().sweep(swept, 1), true)
      const never = fresh('lease')
      const answers = await first().change('p', [
        take(swept, wallet, 10n, { seq: 2 }),
        give(swept, wallet, 10n, 3),
        take(never, wallet, 10n, { seq: 2 }),
        give(never, wallet, 10n, 1),
      ])
      const state = { limited: true, funds: 100n, spent: 0n, leased: 0n }
      assert.deepEqual(
        answers,
        answers.map(() => ({ moved: 0n, lost: true, open: false, state })),
      )
    })

    it('a lease emptied by its charges stays open', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const lease = await leaseOf(first(), wallet, 50n)
      await first().settle([charge(account, 50n, { draws: [draw(lease, wallet, 50n)] })])
      assert.equal((await openLease(lease))?.held, 0n)
      assert.equal((await first().change('p', [take(lease, wallet, 50n, { seq: 2 })]))[0]?.moved, 50n)
    })

    it('concurrent takes of many processes never hold more than the wallet has', async () => {
      const account = await prepaid(first(), 1000n)
      const wallet = accountWallet(account)
      const quota = keyWallet(await keyOf(first(), 500n))
      const { ledgers } = tested()
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => {
          const ledger = ledgers[i % ledgers.length] ?? ledgers[0]
          const changes = [take(fresh('lease'), wallet, 30n), take(fresh('lease'), quota, 30n)]
          return ledger.change(`p${i}`, i % 3 === 0 ? changes.reverse() : changes)
        }),
      )
      const moved = (id: WalletId) =>
        answers.flat().filter(({ state }) => state?.funds === (id === wallet ? 1000n : 500n))
      const sum = (id: WalletId) => moved(id).reduce((total, answer) => total + answer.moved, 0n)
      assert.deepEqual([sum(wallet), sum(quota)], [990n, 480n])
      assert.equal((await statement(first(), wallet)).leased, 990n)
      assert.equal((await statement(first(), quota)).leased, 480n)
      await assertSound(first())
    })

    it('an invalid amount is refused, and changes nothing', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const wrong = [
        take(fresh('lease'), wallet, -1n),
        take(fresh('lease'), wallet, 1n, { want: 2n ** 63n }),
        take(fresh('lease'), wallet, 1n, { seq: 0 }),
        give(fresh('lease'), wallet, -1n),
      ]
      for (const change of wrong) {
        await assert.rejects(first().change('p', [take(fresh('lease'), wallet, 1n), change]), RangeError)
      }
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })
  })
}
