import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { NOT_KNOWN } from '../../../../lib/core/usage/index.ts'
import { accountWallet } from '../../../../lib/ledger/index.ts'
import {
  openDatabase,
  SqlCallStore,
  SqlLedger,
  SqlUsageCounter,
  SqlUsageStore,
} from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, figuresOf, prepaid, take, voidOf } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'

const DAY_MS = 86_400_000

async function openLedger(t: TestContext) {
  const url = await postgresUrl()
  const db = await openDatabase(url, { poolSize: 4, lockTimeoutMs: 100 })
  const operator = new Client({ connectionString: url })
  await operator.connect()
  t.after(() => Promise.all([db.destroy(), operator.end()]))
  const ledger = new SqlLedger(db)
  /** Runs `run` while a transaction of this process has a wallet, as a slow one of the pool would. */
  const whileOwn = (account: string, run: () => Promise<void>) =>
    db.transaction().execute(async (trx) => {
      await trx
        .selectFrom('wallets')
        .selectAll()
        .where('id', '=', accountWallet(account))
        .forUpdate()
        .execute()
      await run()
    })
  const whileForeign = async (account: string, run: () => Promise<void>, lock = 'for update') => {
    await operator.query('begin')
    await operator.query(`select 1 from wallets where id = $1 ${lock}`, [accountWallet(account)])
    await run()
    await operator.query('rollback')
  }
  const walletsLocked = (accounts: readonly string[]) => ({
    name: 'WalletsLocked',
    wallets: new Set(accounts.map(accountWallet)),
  })
  /** Counts what is not counted yet. */
  const counter = async () => {
    const counting = new SqlUsageCounter(db)
    await counting.counted()
    await counting.close()
  }
  const [calls, usage] = [new SqlCallStore(db), new SqlUsageStore(db)]
  return { ledger, calls, usage, counter, operator, whileOwn, whileForeign, walletsLocked }
}

describe('rows that are locked, by what Postgres says', { skip: WITHOUT_POSTGRES }, () => {
  it('by a transaction of this process or of another one are named', async (t) => {
    const { ledger, whileOwn, whileForeign, walletsLocked } = await openLedger(t)
    const [ours, theirs, free] = await Promise.all([1, 2, 3].map(() => prepaid(ledger, 1000n)))
    assert.ok(ours && theirs && free)
    const changed = (account: string) =>
      ledger.change('p', [take(`l-${account}`, accountWallet(account), 1n)])
    await whileOwn(ours, async () => {
      await assert.rejects(ledger.settle([charge(free, 1n), charge(ours, 1n)]), walletsLocked([ours]))
      await assert.rejects(changed(ours), walletsLocked([ours]))
      await whileForeign(theirs, async () => {
        const both = [charge(theirs, 1n), charge(ours, 1n), charge(free, 1n)]
        await assert.rejects(ledger.settle(both), walletsLocked([theirs, ours]))
      })
    })
    for (const lock of ['for update', 'for no key update', 'for share'])
      await whileForeign(
        theirs,
        async () => {
          const batch = [charge(free, 1n), charge(theirs, 1n)]
          await assert.rejects(ledger.settle(batch), walletsLocked([theirs]), lock)
          await assert.rejects(changed(theirs), walletsLocked([theirs]), lock)
        },
        lock,
      )
    assert.deepEqual(await figuresOf(ledger, accountWallet(free)), [1000n, 0n, 0n, 0n])
    assert.deepEqual(await ledger.settle([charge(ours, 1n), charge(theirs, 1n), charge(free, 1n)]), [
      'written',
      'written',
      'written',
    ])
  })

  it('are reported for usage too, and hold up no entry of the call log', async (t) => {
    const { ledger, calls, counter, usage, operator, walletsLocked } = await openLedger(t)
    // All that was there before has been counted.
    await calls.append([entryAt(Date.now(), { account: 'a', status: 429, outcome: 'refused' })])
    await counter()
    const [theirs, free] = await Promise.all([1, 2].map(() => prepaid(ledger, 1000n)))
    assert.ok(theirs && free)
    const at = Date.now()
    // A session may last a day. The row of the month before is not locked.
    const dayBefore = Math.max(
      at - DAY_MS,
      Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth()),
    )
    await ledger.settle([charge(theirs, 1n, { at }), charge(free, 1n, { at })])
    const refuse = (begun = at) =>
      calls.append(
        [free, theirs].map((account) => entryAt(begun, { account, status: 429, outcome: 'refused' })),
      )
    await refuse()
    for (const lock of ['for update', 'for share']) {
      await operator.query('begin')
      await operator.query(`select 1 from usage where account = $1 ${lock}`, [theirs])
      const batch = [charge(free, 1n, { at }), charge(theirs, 1n, { at })]
      await assert.rejects(ledger.settle(batch), walletsLocked([theirs]), lock)
      assert.deepEqual(await ledger.settle([charge(free, 1n, { at })]), ['written'])
      await refuse(lock === 'for share' ? dayBefore : at)
      await operator.query('rollback')
    }
    const refused = async () => {
      const rows = await usage.read({ from: 0, to: at + DAY_MS, groupBy: ['account'], limit: 10 })
      return rows
        .filter(({ groups }) => groups[0] !== 'a')
        .map(({ groups, sums }) => [groups[0], sums.refused])
    }
    const each = (count: number) => [theirs, free].sort().map((account) => [account, count])
    assert.deepEqual(await refused(), each(1))
    await counter()
    assert.deepEqual(await refused(), each(3))
    await counter()
    assert.deepEqual(await refused(), each(3))
    assert.deepEqual((await ledger.check()).violations, [])
  })

  for (const [kind, what] of [
    ['void', 'the charge'],
    ['void', 'the refused call'],
    ['revoked', 'the charge'],
    ['revoked', 'the refused call'],
  ] as const)
    it(`are reported for usage of ${what} to a charge that is undone (${kind})`, async (t) => {
      const { ledger, operator, walletsLocked } = await openLedger(t)
      const [theirs, free] = await Promise.all([1, 2].map(() => prepaid(ledger, 1000n)))
      assert.ok(theirs && free)
      const at = Date.now()
      const entry = (id: string) =>
        entryAt(at, { id, account: theirs, model: 'small', status: 503, outcome: 'failed' })
      const once = () => charge(theirs, 1n, { at, usage: { ...NOT_KNOWN, model: 'small', line: 'eu' } })
      const [stands, gone] = [once(), once()]
      // One charge stands, and one is undone: there are rows of both kinds.
      await ledger.settle([stands, gone])
      await ledger.settle([voidOf(gone, { entry: entry(gone.requestId) })])
      await operator.query('begin')
      const line = what === 'the charge' ? "line = 'eu'" : "line <> 'eu'"
      const locked = await operator.query(`select 1 from usage where account = $1 and ${line} for update`, [
        theirs,
      ])
      assert.ok(locked.rowCount)
      const undone = { ...stands, kind, entry: entry(stands.requestId) }
      await assert.rejects(ledger.settle([charge(free, 1n, { at }), undone]), walletsLocked([theirs]))
      await operator.query('rollback')
      await ledger.settle([undone])
      assert.deepEqual(await figuresOf(ledger, accountWallet(theirs)), [1000n, 0n, 0n, 0n])
      assert.deepEqual((await ledger.check()).violations, [])
    })

  it('and free again before their owner can be named are waited for once more', async (t) => {
    const { ledger, operator } = await openLedger(t)
    const account = await prepaid(ledger, 1000n)
    // A lock that is gone at each look: what waits for it has waited in vain, and nobody has it.
    const settling: Promise<unknown>[] = []
    for (let i = 0; i < 5; i++) {
      await operator.query('begin')
      await operator.query('select 1 from wallets where id = $1 for update', [accountWallet(account)])
      settling.push(ledger.settle([charge(account, 1n)]).catch((error: Error) => error.name))
      await sleep(95)
      await operator.query('rollback')
    }
    for (const outcome of await Promise.all(settling))
      assert.ok(Array.isArray(outcome) || outcome === 'WalletsLocked', `${outcome}`)
    assert.deepEqual((await ledger.check()).violations, [])
  })
})
