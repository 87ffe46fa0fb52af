import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { auditLedger, type LedgerEntries } from '../../lib/ledger/audit.ts'

const NOTHING: LedgerEntries = { deposits: [], charges: [], voids: [], leases: [], holds: [], wallets: [] }
const ACME = 'account:acme'
const KEY = 'key:k'

const wallet = (
  id: typeof ACME | typeof KEY,
  figures: { funds?: bigint; spent?: bigint; leased?: bigint } = {},
) => ({
  id,
  funds: 0n,
  spent: 0n,
  leased: 0n,
  ...figures,
})

/** Returns the violations that the audit of such entries reports, where there are no others. */
const violationsOf = async (entries: Partial<LedgerEntries>) =>
  (await auditLedger({ ...NOTHING, ...entries })).violations

/** Entries that fit together, with a wallet of every kind of them. */
const SOUND: LedgerEntries = {
  deposits: [
    [
      { account: 'acme', amount: 70n },
      { account: 'acme', amount: 30n },
    ],
    [{ account: 'globex', amount: 5n }],
  ],
  charges: [
    [{ account: 'acme', key: 'k', amount: 20n, count: 2 }],
    [{ account: 'acme', key: null, amount: 7n, count: 1 }],
  ],
  voids: [
    [
      {
        requestId: 'req',
        account: 'acme',
        key: 'k',
        amount: 4n,
        charge: { account: 'acme', key: 'k', amount: 4n },
      },
    ],
    [{ requestId: 'never', account: 'nobody', key: 'none', amount: 0n, charge: null }],
  ],
  leases: [
    [
      { id: 'open', wallet: ACME, held: 11n, ended: null },
      { id: 'used up', wallet: ACME, held: 0n, ended: null },
      { id: 'over', wallet: KEY, held: 0n, ended: 'swept' },
    ],
  ],
  holds: [[{ id: 'video', account: 'acme', key: 'k', amount: 3n, charged: false }]],
  wallets: [
    [wallet(ACME, { funds: 100n, spent: 23n, leased: 14n })],
    [
      { ...wallet(ACME, { funds: 5n }), id: 'account:globex' },
      wallet(KEY, { funds: 999n, spent: 16n, leased: 3n }),
    ],
  ],
}

describe('the audit of a ledger', () => {
  it('finds nothing wrong with matching entries, and sums them up by account', async () => {
    assert.deepEqual(await auditLedger(SOUND), {
      violations: [],
      accounts: 2,
      charges: 3,
      deposited: 105n,
      spent: 23n,
      leased: 14n,
    })
    assert.deepEqual(await auditLedger(NOTHING), {
      violations: [],
      accounts: 0,
      charges: 0,
      deposited: 0n,
      spent: 0n,
      leased: 0n,
    })
  })

  it('reads pages as they arrive', async () => {
    async function* pages() {
      yield [{ account: 'acme', amount: 1n }]
      yield []
      yield [{ account: 'acme', amount: 2n }]
    }
    const wallets = [[wallet(ACME, { funds: 3n })]]
    assert.deepEqual((await auditLedger({ ...NOTHING, deposits: pages(), wallets })).violations, [])
  })

  it('reports the figure of a wallet that differs from its entries', async () => {
    const wallets = [
      [
        wallet(ACME, { funds: 1_500_000_000n, spent: 2n, leased: 3n }),
        wallet(KEY, { spent: 4n, leased: 5n }),
      ],
    ]
    assert.deepEqual(await violationsOf({ wallets }), [
      'wallet "account:acme": spent is 0.000000002, its charges less voids come to 0',
      'wallet "account:acme": leased is 0.000000003, its leases and holds come to 0',
      'wallet "account:acme": funds is 1.5, its deposits and adjustments come to 0',
      'wallet "key:k": spent is 0.000000004, its charges less voids come to 0',
      'wallet "key:k": leased is 0.000000005, its leases and holds come to 0',
    ])
  })

  it('accepts the quota of a key as it was set', async () => {
    assert.deepEqual(await violationsOf({ wallets: [[wallet(KEY, { funds: 7n })]] }), [])
  })

  it('reports missing wallets of accounts and keys', async () => {
    const missing = ['wallet "account:acme" has entries but no row']
    const both = [...missing, 'wallet "key:k" has entries but no row']
    assert.deepEqual(await violationsOf({ deposits: [[{ account: 'acme', amount: 1n }]] }), missing)
    assert.deepEqual(
      await violationsOf({ charges: [[{ account: 'acme', key: 'k', amount: 1n, count: 1 }]] }),
      both,
    )
    assert.deepEqual(
      await violationsOf({ charges: [[{ account: 'acme', key: null, amount: 1n, count: 1 }]] }),
      missing,
    )
    assert.deepEqual(
      await violationsOf({ holds: [[{ id: 'h', account: 'acme', key: null, amount: 1n, charged: false }]] }),
      missing,
    )
    assert.deepEqual(await violationsOf({ leases: [[{ id: 'l', wallet: KEY, held: 1n, ended: null }]] }), [
      both[1],
    ])
  })

  it('reports a void that does not undo its whole charge, for the same owner', async () => {
    const charge = { account: 'acme', key: 'k', amount: 5n }
    const undone = { requestId: 'req', account: 'acme', key: 'k', amount: 5n }
    const saidOf = async (undoing: Partial<typeof undone>, of: typeof charge | null) => {
      const found = await violationsOf({ voids: [[{ ...undone, ...undoing, charge: of }]] })
      return found.filter((violation) => violation.startsWith('void'))
    }
    assert.deepEqual(await saidOf({}, charge), [])
    for (const other of [{ account: 'globex' }, { key: 'other' }]) {
      assert.deepEqual(await saidOf(other, charge), [
        'void of "req" undoes 0.000000005, and its charge is 0.000000005',
      ])
    }
    assert.deepEqual(await saidOf({ amount: 4n }, charge), [
      'void of "req" undoes 0.000000004, and its charge is 0.000000005',
    ])
    assert.deepEqual(await saidOf({}, null), ['void of "req" undoes 0.000000005, and there is no charge'])
    assert.deepEqual(await saidOf({ amount: 0n }, null), [])
    assert.deepEqual(await saidOf({ amount: 0n }, charge), [
      'void of "req" undoes 0, and its charge is 0.000000005',
    ])
  })

  it('returns a void to account and key', async () => {
    const charge = { account: 'acme', key: 'k', amount: 5n }
    const wallets = [[wallet(ACME, { spent: -5n }), wallet(KEY, { spent: -5n })]]
    assert.deepEqual(await violationsOf({ voids: [[{ requestId: 'req', ...charge, charge }]], wallets }), [])
    const ofNobody = { ...charge, key: null }
    assert.deepEqual(
      await violationsOf({
        voids: [[{ requestId: 'req', ...ofNobody, charge: ofNobody }]],
        wallets: [[wallet(ACME, { spent: -5n })]],
      }),
      [],
    )
  })

  it('reports a lease that holds less than nothing, or an amount after its end', async () => {
    const saidOf = async (held: bigint, ended: 'closed' | 'swept' | null) =>
      violationsOf({
        leases: [[{ id: 'l', wallet: ACME, held, ended }]],
        wallets: [[wallet(ACME, { leased: held })]],
      })
    assert.deepEqual(await saidOf(0n, null), [])
    assert.deepEqual(await saidOf(0n, 'closed'), [])
    assert.deepEqual(await saidOf(1n, 'swept'), [
      'lease "l", which has ended, holds 0.000000001 of wallet "account:acme"',
    ])
    assert.deepEqual(await saidOf(-1n, null), ['lease "l" holds -0.000000001 of wallet "account:acme"'])
  })

  it('reports a hold of nothing, or of an amount that is charged already', async () => {
    const saidOf = async (amount: bigint, charged: boolean) =>
      violationsOf({
        holds: [[{ id: 'h', account: 'acme', key: null, amount, charged }]],
        wallets: [[wallet(ACME, { leased: amount })]],
      })
    assert.deepEqual(await saidOf(1n, false), [])
    assert.deepEqual(await saidOf(0n, false), ['hold "h" is of 0'])
    assert.deepEqual(await saidOf(1n, true), ['hold "h", which is charged, is of 0.000000001'])
  })
})
