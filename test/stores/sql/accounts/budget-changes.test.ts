import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Budget, budgetWallet } from '../../../../lib/ledger/budgets/budget.ts'
import { MAX_BUDGETS } from '../../../../lib/management/budgets/budget-store.ts'
import {
  type Database,
  SqlAccountStore,
  SqlBudgetStore,
  SqlChangeLog,
  SqlLedger,
} from '../../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { take } from '../../../contracts/ledger-money.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

function budgetOf(id: string, account = 'acme'): Budget {
  const scope = { account, key: null, user: null, tag: null }
  const terms = { amount: 100n, hard: true, soft: [0.5] }
  return { id, scope, period: 'total', timezone: 'UTC', createdAt: 1, ...terms }
}

/** Two processes with the accounts `acme` and `beside`. */
async function processes(t: TestContext, address: string) {
  const [db, other] = [await open(t, address), await open(t, address)] as [Database, Database]
  for (const id of ['acme', 'beside']) await new SqlAccountStore(db).create(id, PREPAID, originOf())
  return { db, stores: [new SqlBudgetStore(db), new SqlBudgetStore(other)] as const }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`changes of budgets at the same time: ${name}`, { skip }, () => {
    it('are each returned to a process that asks for those since the last', async (t) => {
      const { stores } = await processes(t, await url(t))
      const [store, other] = stores
      const ids = Array.from({ length: 12 }, (_, i) => `b${i}`)
      let version = 0
      const seen = new Map<string, bigint | 'deleted'>()
      const look = async () => {
        const changes = await other.changes(version)
        version = changes.version
        for (const { id, amount, deleted } of changes.budgets) seen.set(id, deleted ? 'deleted' : amount)
      }
      const making = { over: false }
      const looking = (async () => {
        for (; !making.over; await sleep(5)) await look()
      })()
      const made = ids.map(async (id, i) => {
        const own = stores[i % 2] as SqlBudgetStore
        assert.equal(await own.create(budgetOf(id, i % 3 === 0 ? 'beside' : 'acme'), originOf()), 'created')
        await (stores[(i + 1) % 2] as SqlBudgetStore).change(
          id,
          (terms) => ({ ...terms, amount: BigInt(200 + i) }),
          originOf(),
        )
        if (i % 4 === 0) assert.equal(await own.delete(id, originOf()), true)
      })
      await Promise.all(made).finally(() => {
        making.over = true
      })
      await looking
      await look()
      // A reader of all budgets is not sent those that are gone by then.
      assert.deepEqual(
        ids.map((id) => seen.get(id) ?? 'deleted'),
        ids.map((_, i) => (i % 4 === 0 ? 'deleted' : BigInt(200 + i))),
      )
      const left = await store.list({ limit: 100 })
      assert.deepEqual(left.map(({ id }) => id).sort(), ids.filter((_, i) => i % 4 !== 0).sort())
    })

    it('are read in pages, each once, though many were changed at once', async (t) => {
      const { db, stores } = await processes(t, await url(t))
      const row = {
        ...{ account: 'acme', key: null, user: null, tag: null, amount: 1n, hard: 1, soft: '[]' },
      }
      const when = { period: 'day', timezone: 'UTC', created_at: 1n, deleted: 0 } as const
      // 300 of them with the version of one at the end of a page.
      const rows = Array.from({ length: 2500 }, (_, i) => {
        return { ...row, ...when, id: `b${i}`, version: BigInt(Math.min(i + 1, Math.max(900, i - 299))) }
      })
      for (let i = 0; i < rows.length; i += 500)
        await db
          .insertInto('budgets')
          .values(rows.slice(i, i + 500))
          .execute()
      const pages: number[] = []
      const seen: string[] = []
      for (let version = 0, more = true; more; ) {
        const changes = await stores[0].changes(version)
        pages.push(changes.budgets.length)
        seen.push(...changes.budgets.map(({ id }) => id))
        version = changes.version
        more = changes.more ?? false
      }
      assert.deepEqual(pages, [1200, 1000, 300])
      assert.deepEqual(seen.sort(), rows.map(({ id }) => id).sort())
    })

    it('of one budget come one after another, none is lost, and its wallet has the last', async (t) => {
      const { db, stores } = await processes(t, await url(t))
      const ledger = new SqlLedger(db)
      for (const id of ['b', 'c']) await stores[0].create(budgetOf(id), originOf())
      for (const id of ['b', 'c']) await ledger.change('p', [take(`lease ${id}`, budgetWallet(id, 0), 1n)])
      const changes = Array.from({ length: 12 }, (_, i) =>
        (stores[i % 2] as SqlBudgetStore).change(
          'b',
          (terms) => ({ ...terms, amount: terms.amount + 1n }),
          originOf(),
        ),
      )
      const amounts = (await Promise.all(changes)).map((budget) => budget?.amount)
      assert.deepEqual(new Set(amounts), new Set(Array.from({ length: 12 }, (_, i) => 101n + BigInt(i))))
      const wallets = await ledger.wallets([budgetWallet('b', 0), budgetWallet('c', 0)])
      assert.deepEqual(
        wallets.map(({ funds, limited }) => [funds, limited]),
        [
          [112n, true],
          [100n, true],
        ],
      )
      const log = await new SqlChangeLog(db).list({ subject: 'b', limit: 100 })
      assert.equal(log.length, 13)
      const deletions = await Promise.all(stores.map((store) => store.delete('b', originOf())))
      assert.deepEqual(deletions.sort(), [false, true])
      const [gone] = await ledger.wallets([budgetWallet('b', 0)])
      assert.equal(gone?.limited, false)
    })

    it('never give an account more than it may have', async (t) => {
      const { db, stores } = await processes(t, await url(t))
      const rows = Array.from({ length: MAX_BUDGETS - 2 }, (_, i) => ({
        ...{ id: `old ${i}`, account: 'acme', key: null, user: null, tag: null, amount: 1n },
        ...{ period: 'total', timezone: 'UTC', hard: 1, soft: '[]', created_at: 1n },
        ...{ version: BigInt(i + 1), deleted: 0 },
      })) as never[]
      for (let at = 0; at < rows.length; at += 100)
        await db
          .insertInto('budgets')
          .values(rows.slice(at, at + 100))
          .execute()
      const create = (id: string, i: number, account = 'acme') =>
        (stores[i % 2] as SqlBudgetStore).create(budgetOf(id, account), originOf())
      const created = await Promise.all(['u', 'v', 'w', 'x', 'y'].map((id, i) => create(id, i)))
      assert.deepEqual(created.sort(), ['created', 'created', 'too_many', 'too_many', 'too_many'])
      assert.equal(await create('z', 0, 'beside'), 'created')
    })
  })
}
