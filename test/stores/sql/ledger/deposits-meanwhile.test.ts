import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { MAX_AMOUNT } from '../../../../lib/core/catalog/money.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { deposit } from '../../../../lib/stores/sql/ledger/sql-ledger-admin.ts'
import { assertSound, figures } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { interrupted } from '../support/interrupted-database.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

/** A deposit that does not fit at first, of which another process does something before that is known. */
async function world(t: TestContext, meanwhile: (other: SqlLedger) => Promise<unknown>) {
  const url = await postgresUrl()
  const [own, others] = [await open(t, url), await open(t, url)]
  const other = new SqlLedger(others)
  await other.deposit('acme', MAX_AMOUNT, 'opening', 1)
  let times = 0
  const { db, seen } = interrupted(
    own,
    async () => {},
    async () => {
      if (times++ === 0) await meanwhile(other)
    },
  )
  const asked = { account: 'acme', amount: 7n, reference: 'more', at: 2 }
  return { asked: () => deposit(db, asked), other, seen }
}

describe('a deposit that does not fit until another process takes something away', {
  skip: WITHOUT_POSTGRES,
}, () => {
  it('is made, once', async (t) => {
    const { asked, other, seen } = await world(t, (ledger) => ledger.deposit('acme', -9n, 'taken', 2))
    assert.equal(await asked(), 'deposited')
    assert.equal(seen.transactions, 2)
    assert.deepEqual(await figures(other, 'acme'), [MAX_AMOUNT - 2n, 0n, 0n, 0n])
    assert.equal(await asked(), 'known')
    await assertSound(other)
  })

  it('is known where that process has made it, too', async (t) => {
    const { asked, other, seen } = await world(t, async (ledger) => {
      await ledger.deposit('acme', -9n, 'taken', 2)
      await ledger.deposit('acme', 7n, 'more', 2)
    })
    assert.equal(await asked(), 'known')
    assert.equal(seen.transactions, 1)
    assert.deepEqual(await figures(other, 'acme'), [MAX_AMOUNT - 2n, 0n, 0n, 0n])
    await assertSound(other)
  })
})
