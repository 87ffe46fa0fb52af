import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Ledger, LedgerBooks } from '../../lib/ledger/index.ts'
import { RegionalLedger } from '../../lib/ledger/regions/regional-ledger.ts'
import { charge } from '../contracts/ledger-money.ts'

/** The ledger of a region over one that notes what it is asked, and answers by the name of that. */
function over(members: object = {}) {
  const asked: unknown[][] = []
  const noting =
    (name: string) =>
    async (...given: unknown[]) => {
      asked.push([name, ...given])
      return `the answer to ${name}`
    }
  const names = ['renew', 'settle', 'leases', 'watch', 'sweep', 'deposit', 'wallets', 'setLimit', 'check']
  const operations = Object.fromEntries(names.map((name) => [name, noting(name)]))
  const ledger = { settlesRecords: false, ...operations, ...members } as unknown as Ledger & LedgerBooks
  const shares = { homesOf: async () => new Map() }
  return { asked, regional: new RegionalLedger({ ledger, shares, homes: new Map() }) }
}

const SETTLEMENTS = [charge('acme', 5n)]
const ROWS: [name: string, given: unknown[]][] = [
  ['renew', [['l'], 7]],
  ['settle', [SETTLEMENTS]],
  ['leases', []],
  ['watch', ['me']],
  ['sweep', ['l', 3]],
  ['deposit', ['acme', 5n, 'bill', 7]],
  ['wallets', [['account:acme']]],
  ['setLimit', ['key:k', { limited: true, quota: 5n }]],
  ['check', []],
]

describe('the ledger of a region passes on what has nothing to do with shares', () => {
  for (const [name, given] of ROWS)
    it(`to its own ledger, and the answer back: ${name}`, async () => {
      const { asked, regional } = over()
      const operations = regional as unknown as Record<string, (...given: unknown[]) => unknown>
      assert.equal(await operations[name]?.(...given), `the answer to ${name}`)
      assert.deepEqual(asked, [[name, ...given]])
    })

  it('and lists all leases where its own ledger has nobody look for them', async () => {
    const { asked, regional } = over({ watch: undefined })
    assert.equal(await regional.watch('me'), 'the answer to leases')
    assert.deepEqual(asked, [['leases']])
  })

  it('and settles as its own ledger does: with records or without, gathered or not, so many at once', () => {
    const settling = (members: object) => {
      const { settlesRecords, gathers, settlesAtOnce } = over(members).regional
      return [settlesRecords, gathers, settlesAtOnce]
    }
    assert.deepEqual(settling({}), [false, false, 1])
    assert.deepEqual(settling({ settlesRecords: true, gathers: true, settlesAtOnce: 8 }), [true, true, 8])
  })
})
