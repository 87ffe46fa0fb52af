import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { auditLedger, type LedgerEntries } from '../../lib/ledger/audit.ts'
import type { WalletId } from '../../lib/ledger/wallet.ts'

const NOTHING: LedgerEntries = { deposits: [], charges: [], voids: [], leases: [], holds: [], wallets: [] }
const ACME = 'account:acme'
const KEY = 'key:k'
const BUDGET = 'budget:team:0'
const IDS: readonly WalletId[] = [ACME, KEY, BUDGET]

const amount = fc.bigInt(1n, 1000n)
const few = <T>(of: fc.Arbitrary<T>) => fc.array(of, { maxLength: 3 })
const payer = fc.record({ hasKey: fc.boolean(), hasBudget: fc.boolean() })
const books = fc.record({
  deposits: few(fc.bigInt(-1000n, 1000n)),
  charges: few(fc.record({ payer, amount, count: fc.integer({ min: 1, max: 5 }) })),
  voids: few(fc.record({ payer, amount })),
  carried: few(fc.record({ hasKey: fc.boolean(), amount, charges: fc.bigInt(0n, 9n) })),
  leases: few(fc.record({ wallet: fc.constantFrom(...IDS), held: amount })),
  holds: few(fc.record({ hasKey: fc.boolean(), amount })),
})
type Books = typeof books extends fc.Arbitrary<infer T> ? T : never

const spenderOf = ({ hasKey, hasBudget }: { hasKey: boolean; hasBudget?: boolean }) => ({
  account: 'acme',
  key: hasKey ? 'k' : null,
  ...(hasBudget && { budgets: [BUDGET] as const }),
})
const sum = (amounts: readonly bigint[]) => amounts.reduce((all, each) => all + each, 0n)

/** Entries as a ledger would have them, and the figures of its wallets. */
function entriesOf(given: Books) {
  const isOn = (wallet: WalletId, { hasKey, hasBudget = false }: { hasKey: boolean; hasBudget?: boolean }) =>
    wallet === ACME || (wallet === KEY ? hasKey : hasBudget)
  const { charges } = given
  /** Returns the usage of the calls of this key, or of none. */
  const usedBy = (hasKey: boolean) =>
    sum(charges.filter((one) => one.payer.hasKey === hasKey).map((one) => one.amount)) +
    sum(given.carried.filter((one) => one.hasKey === hasKey).map((one) => one.amount))
  const wallets = IDS.map((id) => {
    const spent = [
      ...charges.filter((one) => isOn(id, one.payer)).map((one) => one.amount),
      ...given.carried.filter((one) => isOn(id, one)).map((one) => one.amount),
    ]
    const leased = [
      ...given.leases.filter(({ wallet }) => wallet === id).map(({ held }) => held),
      ...given.holds.filter((one) => isOn(id, one)).map((one) => one.amount),
    ]
    const funds = id === ACME ? given.deposits : []
    return { id, funds: sum(funds), spent: sum(spent), leased: sum(leased) }
  })
  const undone = given.voids.map((one, i) => {
    const charge = { ...spenderOf(one.payer), amount: one.amount }
    const { account, key } = charge
    return { requestId: `undone-${i}`, account, key, amount: one.amount, charge }
  })
  const entries = {
    deposits: [given.deposits.map((deposit) => ({ account: 'acme', amount: deposit }))],
    charges: [
      charges.map(({ payer, amount, count }) => ({ ...spenderOf(payer), amount, count })),
      undone.map(({ charge }) => ({ ...charge, count: 1 })),
    ],
    voids: [undone],
    carried: [
      given.carried.map(({ amount, charges }) => ({ wallet: ACME, amount, charges }) as const),
      given.carried
        .filter(({ hasKey }) => hasKey)
        .map(({ amount }) => ({ wallet: KEY, amount, charges: 0n }) as const),
    ],
    leases: [given.leases.map((lease, i) => ({ ...lease, id: `lease-${i}`, ended: null }))],
    holds: [
      given.holds.map((one, i) => {
        return { ...spenderOf(one), id: `hold-${i}`, amount: one.amount, charged: false }
      }),
    ],
    usage: [[true, false].map((hasKey) => ({ ...spenderOf({ hasKey }), charged: usedBy(hasKey) }))],
    wallets: [wallets],
  }
  return { entries, wallets, undone }
}

describe('the audit of any ledger', () => {
  it('finds nothing wrong with consistent figures, and sums up the accounts', async () => {
    await fc.assert(
      fc.asyncProperty(books, async (given) => {
        const { entries, wallets, undone } = entriesOf(given)
        const [acme] = wallets
        assert.deepEqual(await auditLedger(entries), {
          violations: [],
          accounts: 1,
          charges:
            given.charges.reduce((all, { count }) => all + count, undone.length) +
            Number(sum(given.carried.map(({ charges }) => charges))),
          deposited: sum(given.deposits),
          spent: acme?.spent,
          leased: acme?.leased,
        })
      }),
    )
  })

  it('reports each figure that differs by the smallest amount, with its wallet, and no other', async () => {
    const figures = fc.constantFrom('spent' as const, 'leased' as const, 'funds' as const)
    const off = fc.record({ id: fc.constantFrom(...IDS), figure: figures, by: fc.constantFrom(-1n, 1n) })
    await fc.assert(
      fc.asyncProperty(books, off, async (given, { id, figure, by }) => {
        const { entries, wallets } = entriesOf(given)
        const wrong = wallets.map((wallet) =>
          wallet.id === id ? { ...wallet, [figure]: wallet[figure] + by } : wallet,
        )
        const { violations } = await auditLedger({ ...entries, wallets: [wrong] })
        const isCounted = id !== BUDGET && figure === 'spent'
        // The funds of a key or a budget are set by somebody, so the audit has nothing to compare them with.
        const expected = figure === 'funds' && id !== ACME ? 0 : isCounted ? 2 : 1
        assert.equal(violations.length, expected, violations.join('\n'))
        for (const violation of violations)
          assert.ok(violation.startsWith(`wallet "${id}": ${figure} is `), violation)
      }),
    )
  })
})

describe('the audit of usage', () => {
  const figures = { funds: 0n, spent: 0n, leased: 0n }

  it('is skipped if usage is not given', async () => {
    const charges = [[{ account: 'acme', key: null, amount: 5n, count: 1 }]]
    const entries = { ...NOTHING, charges, wallets: [[{ id: ACME, ...figures, spent: 5n } as const]] }
    assert.deepEqual((await auditLedger(entries)).violations, [])
    assert.deepEqual((await auditLedger({ ...entries, usage: [] })).violations, [
      'wallet "account:acme": spent is 0.000000005, its usage comes to 0',
    ])
  })

  it('reads no wallet for calls that were charged nothing', async () => {
    const usage = [[{ account: 'nobody', key: 'none', charged: 0n }]]
    assert.deepEqual((await auditLedger({ ...NOTHING, usage })).violations, [])
    const charges = [[{ account: 'acme', key: 'k', amount: 0n, count: 1 }]]
    const wallets = [IDS.slice(0, 2).map((id) => ({ id, ...figures }))]
    assert.deepEqual((await auditLedger({ ...NOTHING, charges, wallets, usage })).violations, [])
  })

  it('reports other sums of the same calls that differ, and the owner of these calls', async () => {
    const other = [
      { name: 'its fine rows', charged: 3n, expected: 4n },
      { name: 'its days', charged: 4n, expected: 4n },
    ]
    const usage = [[null, 'k'].map((key) => ({ account: 'acme', key, charged: 0n, other }))]
    assert.deepEqual((await auditLedger({ ...NOTHING, usage })).violations, [
      'usage of account "acme" comes to 0.000000004, its fine rows to 0.000000003',
      'usage of account "acme" and key "k" comes to 0.000000004, its fine rows to 0.000000003',
    ])
  })
})

describe('the audit of a budget whose wallet is missing', () => {
  const DAY_MS = 86_400_000
  const said = async (begunDaysAgo: number, held: bigint) => {
    const wallet: WalletId = `budget:team:${Date.now() - begunDaysAgo * DAY_MS}`
    const charges = [[{ account: 'acme', key: null, amount: 0n, count: 1, budgets: [wallet] }]]
    const leases = [[{ id: 'l', wallet, held, ended: null }]]
    const wallets = [[{ id: ACME, funds: 0n, spent: 0n, leased: 0n } as const]]
    const { violations } = await auditLedger({ ...NOTHING, charges, leases, wallets })
    return violations.map((violation) => violation.replace(/\d+"/, 'start"'))
  }
  const GONE = ['wallet "budget:team:start" has entries but no row']

  it('assumes that it was deleted if its period is long past, by the clock of another process', async () => {
    assert.deepEqual(await said(101, 0n), [])
    // That clock may be a day ahead.
    assert.deepEqual(await said(99.1, 0n), [])
    assert.deepEqual(await said(98.9, 0n), GONE)
    assert.deepEqual(await said(0, 0n), GONE)
  })

  it('reports it if an amount is still held on it', async () => {
    assert.deepEqual(await said(101, 1n), GONE)
  })
})
