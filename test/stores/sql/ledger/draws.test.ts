import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, MemoryLedger } from '../../../../lib/ledger/index.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { assertSound, charge, draw, figures, leaseOf } from '../../../contracts/ledger-money.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`a charge that names a lease of another wallet: ${name}`, { skip }, () => {
    for (const amount of [3n, 40n, 41n])
      it(`takes nothing of that, as where there is no such lease, for ${amount}`, async () => {
        for (const ledger of [new SqlLedger((await emptied()).db), new MemoryLedger()]) {
          await ledger.deposit('acme', 1000n, 'opening', 1)
          await ledger.deposit('globex', 1000n, 'opening', 1)
          const theirs = await leaseOf(ledger, accountWallet('acme'), 40n)
          const own = await leaseOf(ledger, accountWallet('globex'), 60n)
          const draws = [draw(theirs, accountWallet('globex'), amount)]
          assert.deepEqual([...(await ledger.settle([charge('globex', amount, { draws })]))], ['written'])
          assert.deepEqual(await figures(ledger, 'acme'), [1000n, 0n, 40n, 0n])
          assert.deepEqual(await figures(ledger, 'globex'), [1000n, amount, 60n, amount])
          const held = new Map((await ledger.leases()).map((lease) => [lease.id, lease.held]))
          assert.deepEqual([held.get(theirs), held.get(own)], [40n, 60n])
          await assertSound(ledger)
        }
      })
  })
  describe(`a charge that draws on one of several leases of a wallet: ${name}`, { skip }, () => {
    for (const amount of [3n, 40n, 41n])
      it(`leaves the others as they are, for ${amount}`, async () => {
        for (const ledger of [new SqlLedger((await emptied()).db), new MemoryLedger()]) {
          await ledger.deposit('acme', 1000n, 'opening', 1)
          const wallet = accountWallet('acme')
          const [own, other] = [await leaseOf(ledger, wallet, 40n), await leaseOf(ledger, wallet, 60n)]
          const draws = [draw(own, wallet, amount)]
          assert.deepEqual([...(await ledger.settle([charge('acme', amount, { draws })]))], ['written'])
          const drawn = amount > 40n ? 40n : amount
          assert.deepEqual(await figures(ledger, 'acme'), [1000n, amount, 100n - drawn, amount - drawn])
          const held = new Map((await ledger.leases()).map((lease) => [lease.id, lease.held]))
          assert.deepEqual([held.get(own), held.get(other)], [40n - drawn, 60n])
          await assertSound(ledger)
        }
      })
  })
}
