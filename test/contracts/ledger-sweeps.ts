import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet } from '../../lib/ledger/index.ts'
import { figures, fresh, give, type LedgerUnderTest, leaseOf, prepaid, take } from './ledger-money.ts'

/** The contract of a ledger for leases that are renewed, and those that are not. */
export function sweepsContract(tested: () => LedgerUnderTest): void {
  const first = () => tested().ledgers[0]
  const openLease = async (id: string) => (await first().leases()).find((lease) => lease.id === id)

  describe('leases that are renewed or swept', () => {
    it('an open lease is visible to all processes, with its amount and its owner', async () => {
      const wallet = accountWallet(await prepaid(first(), 100n))
      const lease = fresh('lease')
      await first().change('owner 7', [take(lease, wallet, 40n)])
      await first().change('owner 7', [take(lease, wallet, 5n, { seq: 2 })])
      assert.deepEqual([...(await first().renew([lease, fresh('lease'), lease], 123_456))], [lease])
      for (const ledger of tested().ledgers) {
        const found = (await ledger.leases()).find(({ id }) => id === lease)
        assert.deepEqual(found, {
          id: lease,
          wallet,
          owner: 'owner 7',
          held: 45n,
          beats: 3,
          renewedAt: 123_456,
        })
      }
      assert.deepEqual([...(await first().renew([], 1))], [])
    })

    it('many leases are renewed at once, and only existing ones', async () => {
      const wallet = accountWallet(await prepaid(first(), 10_000n))
      const ids = Array.from({ length: 1500 }, () => fresh('lease'))
      await first().change(
        'p',
        ids.map((id) => take(id, wallet, 1n)),
      )
      const asked = ids.flatMap((id, i) => (i % 2 === 0 ? [id, fresh('lease')] : []))
      const kept = await first().renew(asked, 9)
      assert.deepEqual([...kept].sort(), ids.filter((_, i) => i % 2 === 0).sort())
    })

    it('a sweep returns the amount of a lease, unless it was renewed', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const lease = await leaseOf(first(), wallet, 50n)
      const seen = (await openLease(lease))?.beats ?? 0
      await first().renew([lease], 5)
      assert.equal(await first().sweep(lease, seen), false)
      assert.equal(await first().sweep(fresh('lease'), 1), false)
      assert.deepEqual(await figures(first(), account), [100n, 0n, 50n, 0n])
      assert.deepEqual(await Promise.all([1, 2].map(() => first().sweep(lease, seen + 1))), [true, true])
      assert.equal(await first().sweep(lease, seen + 1), true, 'asked for again')
      assert.equal(await first().sweep(lease, seen), false)
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
      assert.equal(await openLease(lease), undefined)
      assert.deepEqual([...(await first().renew([lease], 6))], [])
    })

    it('a returned lease is not swept, and its last change may be repeated', async () => {
      const account = await prepaid(first(), 100n)
      const wallet = accountWallet(account)
      const lease = await leaseOf(first(), wallet, 50n)
      const [back] = await first().change('p', [give(lease, wallet, 50n)])
      for (const beats of [1, 2, 3]) assert.equal(await first().sweep(lease, beats), false)
      assert.deepEqual(await first().change('p', [give(lease, wallet, 50n)]), [back])
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })
  })
}
