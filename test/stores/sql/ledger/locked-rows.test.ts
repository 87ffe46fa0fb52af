import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import {
  rowsOfBudgets,
  rowsOfChanges,
  rowsOfSettlements,
  unlessLocked,
} from '../../../../lib/stores/sql/ledger/locked-rows.ts'
import { charge, draw, prepaid, take, voidOf } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const LOCKED = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })

async function world(t: TestContext) {
  const url = await postgresUrl()
  const [db, other] = [await open(t, url), await open(t, url)]
  const ledger = new SqlLedger(db)
  return { db, other, ledger, account: await prepaid(ledger, 1000n) }
}

describe('an operation that has waited for a lock in vain', { skip: WITHOUT_POSTGRES }, () => {
  it('is repeated while nothing is locked any more, for five seconds', async (t) => {
    const { db, account } = await world(t)
    let now = 1000
    t.mock.method(performance, 'now', () => now)
    const rows = () => rowsOfChanges([take('l', `account:${account}`, 1n)])
    let tried = 0
    const operate = async () => {
      tried++
      if (tried === 3) now += 4999
      if (tried === 5) now += 1
      throw LOCKED
    }
    await assert.rejects(unlessLocked(db, rows, operate), LOCKED)
    assert.equal(tried, 5)
    assert.equal(await unlessLocked(db, rows, async () => tried), 5)
  })

  it('rejects with any other error at once', async (t) => {
    const { db } = await world(t)
    let tried = 0
    const failing = unlessLocked(
      db,
      () => assert.fail('nobody asks which rows are locked'),
      async () => {
        tried++
        throw new Error('the disk is full')
      },
    )
    await assert.rejects(failing, /the disk is full/)
    assert.equal(tried, 1)
  })

  it('says whose rows of each table are locked, and no others', async (t) => {
    const { db, other, account } = await world(t)
    const ledger = new SqlLedger(db)
    const [busy, free, key] = [account, await prepaid(ledger, 1000n), 'k']
    const at = Date.now()
    await ledger.change('p', [take('busy', `account:${busy}`, 9n), take('free', `account:${free}`, 9n)])
    await db
      .insertInto('idempotency')
      .values(
        ['busy', 'free'].map((id) => ({
          id,
          owner: id,
          fingerprint: 'f',
          state: 'running' as const,
          expires_at: 1n,
        })),
      )
      .execute()
    const settlement = (name: 'busy' | 'free', payer: string) =>
      charge(payer, 1n, {
        ...{ at, key: name === 'busy' ? key : null },
        draws: [draw(name, `account:${payer}`, 1n)],
        claim: { id: name, owner: name, keepUntil: 1 },
      })
    const settlements = [settlement('busy', busy), settlement('free', free)]
    assert.deepEqual(await ledger.settle(settlements), ['written', 'written'])
    const rows = () => rowsOfSettlements(settlements)
    const locks = [
      ['wallets', 'id', `account:${busy}`],
      ['wallets', 'id', `key:${key}`],
      ['leases', 'id', 'busy'],
      ['idempotency', 'id', 'busy'],
      ['usage', 'account', busy],
    ] as const
    for (const [table, column, value] of locks)
      await other.transaction().execute(async (trx) => {
        const query = trx.selectFrom(table).selectAll() as never as {
          where(column: string, is: '=', value: string): { forUpdate(): { execute(): Promise<unknown[]> } }
        }
        assert.ok((await query.where(column, '=', value).forUpdate().execute()).length > 0, table)
        const operate = () => Promise.reject(LOCKED)
        await assert.rejects(
          unlessLocked(db, rows, operate),
          { name: 'WalletsLocked', wallets: new Set([`account:${busy}`]) },
          table,
        )
      })
  })
})

describe('the rows that an operation locks', () => {
  it('are those of its settlements, each of the account that pays', () => {
    const one = charge('acme', 1n, {
      ...{ requestId: 'r1', key: 'k', budgets: ['budget:b:1' as const] },
      draws: [draw('l', 'account:acme', 1n)],
      claim: { id: 'c', owner: 'o', keepUntil: 1 },
    })
    const two = voidOf(charge('globex', 1n, { requestId: 'r2' }))
    const { byId, usage } = rowsOfSettlements([one, two])
    const ids = Object.entries(byId).map(([table, owners]) => [
      table,
      [...(owners ?? [])].map((row) => row.join()),
    ])
    assert.deepEqual(Object.fromEntries(ids), {
      wallets: [
        'account:acme,account:acme',
        'budget:b:1,account:acme',
        'key:k,account:acme',
        'account:globex,account:globex',
      ],
      budgets: ['b,account:acme'],
      leases: ['l,account:acme'],
      idempotency: ['c,account:acme'],
      calls: ['r1,account:acme', 'r2,account:globex'],
    })
    // A void takes from what its charge has added.
    assert.deepEqual(new Set(usage.map(([account]) => account)), new Set(['acme', 'globex']))
  })

  it('are the wallets and leases of changes, and the budgets of wallets that are opened', () => {
    const changes = rowsOfChanges([take('l1', 'account:acme', 1n), take('l2', 'key:k', 1n)])
    assert.deepEqual(changes.usage, [])
    assert.deepEqual(changes.byId, {
      wallets: new Map([
        ['account:acme', 'account:acme'],
        ['key:k', 'key:k'],
      ]),
      leases: new Map([
        ['l1', 'account:acme'],
        ['l2', 'key:k'],
      ]),
    })
    const budgets = rowsOfBudgets(['budget:b1:1', 'budget:b:2:3'])
    assert.deepEqual(budgets, {
      byId: {
        budgets: new Map([
          ['b1', 'budget:b1:1'],
          ['b:2', 'budget:b:2:3'],
        ]),
      },
      usage: [],
    })
  })
})
