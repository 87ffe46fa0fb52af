import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { LeaseChange, WalletId } from '../../../../lib/ledger/index.ts'
import {
  changeLease,
  type LeaseRecord,
  sweepLease,
  type WalletFigures,
} from '../../../../lib/ledger/lease.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { leaseOf } from '../../../contracts/ledger-money.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { saveLeases } from '../support/stored-leases.ts'
import { open } from '../support/temporary-database.ts'

const PAIRS = 2000
const MOST = 2n ** 63n - 1n

const figure = fc.oneof(
  fc.bigInt(0n, 40n),
  fc.bigInt(0n, 40n),
  fc.constantFrom(2n ** 53n + 1n, MOST / 2n, MOST),
)
const wallet = fc.option(
  fc.record({ limited: fc.boolean(), funds: figure, spent: figure, leased: fc.bigInt(0n, 40n) }),
  { freq: 20 },
)
const lease = fc.option(
  fc.record({
    isOther: fc.nat(9).map((n) => n === 0),
    held: fc.bigInt(0n, 40n),
    seq: fc.nat(3),
    last_moved: figure,
    beats: fc.nat(3),
    ended: fc.constantFrom(null, null, null, 'closed' as const, 'swept' as const),
  }),
)
const change = fc.record({
  seq: fc.integer({ min: 1, max: 4 }),
  beats: fc.nat(3),
  asked: fc.oneof(
    fc.record({ kind: fc.constant('take' as const), need: figure, want: figure }),
    fc.record({ kind: fc.constant('give' as const), amount: figure }),
  ),
})
const pairs = fc.array(fc.tuple(wallet, lease, change), { minLength: PAIRS, maxLength: PAIRS })

/** Wallets and leases of random figures, a change of each pair, and both in the database. */
async function world(t: Parameters<typeof open>[0]) {
  const db = await open(t, await postgresUrl())
  const [given = []] = fc.sample(pairs, { numRuns: 1, seed: 18 })
  const wallets = new Map<WalletId, WalletFigures>()
  const leases = new Map<string, LeaseRecord>()
  const changes: (LeaseChange & { beats: number })[] = []
  for (const [i, [figures, found, { asked, ...numbers }]] of given.entries()) {
    const id: WalletId = `account:${i}`
    if (figures) wallets.set(id, { ...figures, overrun: 0n })
    if (figures && found) {
      const { isOther, last_moved: lastMoved, ended, held, ...rest } = found
      const own = { id: `l${i}`, owner: 'p', held: ended ? 0n : held, renewedAt: 1, lastMoved, ended }
      const wallet: WalletId = isOther ? 'account:0' : id
      leases.set(own.id, { ...own, ...rest, wallet, endedAt: ended && 1 })
    }
    changes.push({ lease: `l${i}`, wallet: id, ...numbers, change: asked })
  }
  await db
    .insertInto('wallets')
    .values([...wallets].map(([id, { limited, ...rest }]) => ({ id, limited: Number(limited), ...rest })))
    .execute()
  await saveLeases(db, [...leases.values()])
  async function read() {
    const rows = await db.selectFrom('wallets').selectAll().execute()
    const kept = await db.selectFrom('leases').selectAll().execute()
    return {
      wallets: new Map(rows.map(({ id, limited, ...rest }) => [id, { limited: limited !== 0, ...rest }])),
      leases: new Map(
        kept.map(({ last_moved: lastMoved, renewed_at: _, ended_at, ...rest }) => {
          return [rest.id, { ...rest, lastMoved, endedAt: ended_at !== null }]
        }),
      ),
    }
  }
  const expected = () => ({
    wallets,
    leases: new Map(
      [...leases].map(([id, { renewedAt: _, endedAt, ...rest }]) => {
        return [id, { ...rest, endedAt: endedAt !== null }]
      }),
    ),
  })
  return { ledger: new SqlLedger(db), wallets, leases, changes, read, expected }
}

describe('the statements for leases on Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it(`change ${PAIRS} leases by the rules of all ledgers`, async (t) => {
    const { ledger, wallets, leases, changes, read, expected } = await world(t)
    const answers = await ledger.change('p', changes)
    const verdicts = new Set<string>()
    for (const [i, asked] of changes.entries()) {
      const { lease, answer } = changeLease(
        wallets.get(asked.wallet),
        leases.get(asked.lease),
        { ...asked, owner: 'p' },
        2,
      )
      if (lease) leases.set(lease.id, lease)
      assert.deepEqual(answers[i], answer, JSON.stringify(i))
      verdicts.add(`${asked.change.kind} ${answer.lost} ${answer.open} ${answer.moved > 0n}`)
    }
    assert.deepEqual(await read(), expected())
    assert.equal(verdicts.size, 10, [...verdicts].sort().join(', '))
  })

  it('sweep those whose beats are as given, by the same rules', async (t) => {
    const { ledger, wallets, leases, changes, read, expected } = await world(t)
    const swept = await Promise.all(changes.map(({ lease, beats }) => ledger.sweep(lease, beats)))
    for (const [i, { lease: id, beats }] of changes.entries()) {
      const lease = leases.get(id)
      const wallet = lease && wallets.get(lease.wallet)
      const isDue = wallet !== undefined && lease?.beats === beats
      if (isDue && !lease.ended) sweepLease(wallet, lease, 2)
      assert.equal(swept[i], isDue && lease.ended === 'swept')
    }
    assert.deepEqual(await read(), expected())
  })

  it('give a change that is sent twice at once to one of them, and the same answer to both', async (t) => {
    const { ledger, wallets, changes } = await world(t)
    const fresh = changes.filter(({ wallet, change }) => wallets.has(wallet) && change.kind === 'take')
    const opening = fresh.map((change, i) => ({ ...change, lease: `new ${i}`, seq: 1 }))
    const [one, ...others] = await Promise.all(Array.from({ length: 4 }, () => ledger.change('p', opening)))
    assert.ok(one?.some(({ moved }) => moved > 0n))
    const openings = (answers: typeof one) => answers?.filter(({ open }) => open).map(({ moved }) => moved)
    for (const other of others) assert.deepEqual(openings(other), openings(one))
  })

  it('show open leases to three processes, and to others once one of these has not asked for ten seconds', async (t) => {
    const db = await open(t, await postgresUrl())
    const ledger = new SqlLedger(db)
    const asked = async (watchers: string) => {
      const shown = await Promise.all(
        [...watchers].map(async (one) => ((await ledger.watch(one)) ? one : '')),
      )
      return shown.join('')
    }
    const passed = (ms: number) =>
      db
        .updateTable('lease_watchers')
        .set(({ eb }) => ({ seen_at: eb('seen_at', '-', BigInt(ms)) }))
        .execute()
    assert.deepEqual(await ledger.watch('a'), [])
    await ledger.deposit('acme', 1000n, 'first', 1)
    const lease = await leaseOf(ledger, 'account:acme', 5n)
    assert.deepEqual(await ledger.watch('a'), await ledger.leases())
    assert.equal((await ledger.watch('a'))?.[0]?.id, lease)
    assert.equal((await asked('bcdef')).length, 2, 'at once, and none waits for another')
    const three = await asked('abcdef')
    assert.equal(three.length, 3)
    const [first = '', second = '', third = ''] = three
    const others = [...'abcdef'].filter((one) => !three.includes(one)).join('')
    await passed(9000)
    assert.equal(await asked(others + first + second), first + second)
    await passed(2000)
    assert.equal((await asked(others)).length, 1, 'in place of the third')
    assert.equal(await asked(first + second + third), first + second)
    await passed(-60_000)
    assert.equal((await asked(others)).length, 3, 'the clock of the database was set back')
  })
})
