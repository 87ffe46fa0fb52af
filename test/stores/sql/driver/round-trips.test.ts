import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Budget, budgetWallet } from '../../../../lib/ledger/budgets/budget.ts'
import { accountWallet, keyWallet } from '../../../../lib/ledger/index.ts'
import { hashSecret } from '../../../../lib/middleware/authenticate/index.ts'
import {
  type Database,
  openDatabase,
  SqlAccountStore,
  SqlAnswerStore,
  SqlBudgetStore,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlKeyDirectory,
  SqlLedger,
  SqlResourceStore,
  SqlTaskStore,
} from '../../../../lib/stores/sql/index.ts'
import { originOf, PREPAID } from '../../../contracts/account-money.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, draw, fresh, give, take, voidOf } from '../../../contracts/ledger-money.ts'
import { created, intentOf } from '../../../contracts/task-samples.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { emptyPostgresUrl, postgresUrl } from '../support/postgres-database.ts'
import { type Wire, wireTo } from '../support/postgres-wire.ts'
import { PATIENT } from '../support/temporary-database.ts'

const NOW = Date.now()
const ACME = accountWallet('acme')
const WHO = { account: 'acme', key: 'k' }
const DONE = { state: 'succeeded', usage: { seconds: 4, tokens: null } } as const

function budgetOf(id: string): Budget {
  const scope = { account: 'acme', key: null, user: null, tag: null }
  const terms = { amount: 1000n, hard: true, soft: [0.5] }
  return { id, scope, period: 'day', timezone: 'UTC', createdAt: 1, ...terms }
}

describe('round trips to Postgres', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()
  let wire: Wire
  let db: Database
  let ledger: SqlLedger
  let claims: SqlIdempotencyStore

  before(async () => {
    wire = await wireTo(cleanUp, await postgresUrl())
    // With one connection, simultaneous queries run one after the other, and each is counted.
    db = await openDatabase(wire.url, { poolSize: 1 })
    ledger = new SqlLedger(db)
    claims = new SqlIdempotencyStore(db)
    await new SqlAccountStore(db).create('acme', PREPAID, originOf())
    await ledger.deposit('acme', 1_000_000n, 'opening', 1)
    await ledger.setLimit(keyWallet('k'), { limited: true, quota: 1_000_000n })
    await new SqlBudgetStore(db).create(budgetOf('b'), originOf())
    // The first renewal tidies up.
    await ledger.renew([], NOW)
  })
  after(() => db.destroy())

  /** An operation takes so many round trips, and its locks last for none of them. */
  function takes(trips: number, what: string, prepare: () => Promise<() => Promise<unknown>>): void {
    it(`${what}: ${trips}`, async () => {
      const operate = await prepare()
      const [before, within] = [wire.roundTrips(), wire.withinTransactions()]
      await operate()
      assert.deepEqual([wire.roundTrips() - before, wire.withinTransactions() - within], [trips, 0])
    })
  }

  /** A lease of the account. */
  async function lease(): Promise<string> {
    const id = fresh('lease')
    await ledger.change('p', [take(id, ACME, 10n)])
    return id
  }

  async function claimed() {
    const claim = { id: fresh('claim'), owner: 'o' }
    const asked = { ...claim, fingerprint: 'f', now: NOW, leaseUntil: NOW + 60_000 }
    await claims.claim(asked)
    return { claim, asked }
  }

  /** The intent of a task, and one that a line has. */
  const intent = () => intentOf(WHO)
  async function intended() {
    const given = intent()
    assert.equal((await new SqlTaskStore(db).intend(given)).kind, 'held')
    return given
  }
  async function taken() {
    const given = await intended()
    await new SqlTaskStore(db).created(given.id, created(), NOW)
    return given
  }

  /** A budget whose wallet is open. */
  async function budgeted(): Promise<Budget> {
    const budget = budgetOf(fresh('b'))
    await new SqlBudgetStore(db).create(budget, originOf())
    await ledger.change('p', [take(fresh('lease'), budgetWallet(budget.id, NOW), 1n)])
    return budget
  }

  describe('of the ledger', () => {
    takes(3, 'a lease that is taken, grows and returns', async () => {
      const id = await lease()
      return () => ledger.change('p', [give(id, ACME, 10n)])
    })
    takes(3, 'many changes at once', async () => {
      const changes = [ACME, keyWallet('k'), ACME].map((wallet) => take(fresh('lease'), wallet, 1n))
      return () => ledger.change('p', changes)
    })
    takes(9, 'a lease on a budget whose period begins', async () => {
      return () => ledger.change('p', [take(fresh('lease'), budgetWallet('b', NOW), 1n)])
    })
    takes(1, 'leases that are renewed', async () => {
      const ids = [await lease(), await lease()]
      return () => ledger.renew(ids, NOW)
    })
    takes(1, 'leases that are listed', async () => () => ledger.leases())
    takes(1, 'leases that are watched', async () => () => ledger.watch('p'))
    takes(5, 'leases that are swept', async () => {
      const ids = [await lease(), await lease()]
      return () => Promise.all(ids.map((id) => ledger.sweep(id, 1)))
    })
    takes(1, 'charges, with their keys, claims and entries', async () => {
      const [id, { claim }] = [await lease(), await claimed()]
      const members = { key: 'k', draws: [draw(id, ACME, 5n)], claim: { ...claim, keepUntil: NOW } }
      const batch = [1, 2].map(() => {
        const entry = entryAt(NOW, { account: 'acme' })
        return charge('acme', 5n, { requestId: entry.id, entry })
      })
      return () => ledger.settle([...batch, charge('acme', 5n, members)])
    })
    takes(5, 'charges of which one is there already', async () => {
      const known = charge('acme', 5n)
      await ledger.settle([known])
      return () => ledger.settle([known, charge('acme', 5n, { draws: [draw('l', ACME, 1n)] })])
    })
    takes(3, 'a void', async () => {
      const known = charge('acme', 5n)
      await ledger.settle([known])
      return () => ledger.settle([voidOf(known)])
    })
    takes(1, 'a deposit', async () => () => ledger.deposit('acme', 1n, fresh('deposit'), 1))
    takes(1, 'a limit', async () => () => ledger.setLimit(keyWallet('k'), { limited: true }))
    takes(1, 'statements', async () => () => ledger.wallets([ACME, keyWallet('k')]))
  })

  describe('of videos', () => {
    takes(1, 'an intent, with its hold and its claim', async () => {
      const { claim } = await claimed()
      const given = { ...intent(), claim }
      return async () => assert.equal((await new SqlTaskStore(db).intend(given)).kind, 'held')
    })
    takes(3, 'an intent that is refused', async () => {
      const given = { ...intent(), hold: 10_000_000n }
      return async () => assert.equal((await new SqlTaskStore(db).intend(given)).kind, 'refused')
    })
    takes(2, 'another line', async () => {
      const { id, price, answerBy } = await intended()
      const target = { line: 'line-b', upstreamModel: 'u', price, answerBy }
      return () => new SqlTaskStore(db).redirect(id, target)
    })
    takes(2, 'a create that a line has taken', async () => {
      const { id } = await intended()
      return () => new SqlTaskStore(db).created(id, created({ entry: entryAt(NOW) }), NOW)
    })
    takes(2, 'a create that none has taken', async () => {
      const { id } = await intended()
      return () => new SqlTaskStore(db).withdraw(id)
    })
    takes(1, 'a create in doubt', async () => {
      const { id } = await intended()
      return () => new SqlTaskStore(db).markUnresolved(id, NOW)
    })
    takes(3, 'a video that is done, with its charge and its entry', async () => {
      const { id } = await taken()
      return () => new SqlTaskStore(db).observe(id, DONE, NOW)
    })
    takes(1, 'a look', async () => () => new SqlTaskStore(db).find('acme', 'none'))
    takes(1, 'polls', async () => {
      return () => new SqlTaskStore(db).claimDue({ owner: 'p', now: NOW, until: NOW, limit: 10 })
    })
  })

  describe('of what else is on the way of a call', () => {
    takes(1, 'a key', async () => () => new SqlKeyDirectory(db).find(hashSecret('sk')))
    takes(3, 'a hundred keys', async () => {
      const hashes = Array.from({ length: 100 }, (_, i) => hashSecret(`sk-${i}`))
      const keys = new SqlKeyDirectory(db)
      return () => Promise.all(hashes.map((hash) => keys.find(hash)))
    })
    takes(1, 'a claim', async () => claimed)
    takes(2, 'a hundred claims', async () => () => {
      return Promise.all(Array.from({ length: 100 }, claimed))
    })
    takes(1, 'hundreds of claims that are renewed', async () => {
      const held = await Promise.all(Array.from({ length: 500 }, claimed))
      return () =>
        claims.renew(
          held.map(({ claim }) => claim),
          NOW,
        )
    })
    takes(2, 'a claim that somebody else has', async () => {
      const { asked } = await claimed()
      const store = claims
      return async () => assert.equal((await store.claim({ ...asked, owner: 'other' }))?.owner, 'o')
    })
    takes(1, 'a claim that is renewed', async () => {
      const { claim } = await claimed()
      return () => claims.renew([claim], NOW)
    })
    takes(1, 'a claim that is completed', async () => {
      const { claim } = await claimed()
      return () => claims.complete(claim, NOW)
    })
    takes(1, 'a claim that is released', async () => {
      const { claim } = await claimed()
      return () => claims.release(claim)
    })
    takes(1, 'entries of the call log', async () => () => {
      return new SqlCallStore(db).append([entryAt(NOW), entryAt(NOW)])
    })
    takes(1, 'an entry that is looked up', async () => () => new SqlCallStore(db).find('req_none'))
    takes(1, 'a part of an answer', async () => () => {
      return new SqlAnswerStore(db).write('req_1', 0, Buffer.from('text'))
    })
    takes(1, 'what a line keeps', async () => () => {
      return new SqlResourceStore(db).find('acme', [{ kind: 'file', id: 'f' }])
    })
  })

  describe('of operators', () => {
    takes(1, 'an account', async () => () => new SqlAccountStore(db).create(fresh('a'), PREPAID, originOf()))
    takes(2, 'a deposit that is recorded', async () => () => {
      return new SqlAccountStore(db).deposit('acme', 1n, fresh('deposit'), originOf())
    })
    // Three of them at the same time.
    takes(4, 'a budget', async () => () => new SqlBudgetStore(db).create(budgetOf(fresh('b')), originOf()))
    takes(2, 'a budget that is changed', async () => {
      const { id } = await budgeted()
      return () => new SqlBudgetStore(db).change(id, (terms) => ({ ...terms, amount: 7n }), originOf())
    })
    takes(2, 'a budget that is deleted', async () => {
      const { id } = await budgeted()
      return () => new SqlBudgetStore(db).delete(id, originOf())
    })
    takes(4, 'sixty deposits to one account', async () => {
      const accounts = new SqlAccountStore(db)
      const deposit = () => accounts.deposit('acme', 1n, fresh('deposit'), originOf())
      return () => Promise.all(Array.from({ length: 60 }, deposit))
    })
  })
})

describe('round trips to Postgres of an opening', { skip: WITHOUT_POSTGRES }, () => {
  const cleanUp = cleaningUp()
  /** The login of a connection and its settings take two of them. */
  async function opening(url: string, readOnly = false): Promise<number> {
    const wire = await wireTo(cleanUp, url)
    await (await openDatabase(wire.url, { ...PATIENT, poolSize: 1, readOnly })).destroy()
    return wire.roundTrips()
  }

  it('are 25 for a database without tables, one of which creates them all', async () => {
    assert.equal(await opening(await emptyPostgresUrl()), 25)
  })
  it('are 6 for a database that has its tables', async () => {
    assert.equal(await opening(await postgresUrl()), 6)
  })
  it('are 4 for a database that is only read', async () => {
    assert.equal(await opening(await postgresUrl(), true), 4)
  })
})
