import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { CallLogEntry, IdempotencyClaim } from '../../lib/core/call/index.ts'
import { shareOfCharge } from '../../lib/core/usage/index.ts'
import type { ChargeRecord, Settlement } from '../../lib/ledger/ledger.ts'
import {
  claimName,
  type HoldRelease,
  plan,
  type SettlementPlan,
  type SettlementRows,
  type StandingCharge,
  usualRows,
} from '../../lib/ledger/plan.ts'
import { accountWallet, keyWallet, type Spender, type WalletId, walletsOf } from '../../lib/ledger/wallet.ts'
import { charge, draw, voidOf } from '../contracts/ledger-money.ts'

interface Wallet {
  spent: bigint
  leased: bigint
  overrun: bigint
}

/** Tables that take the writes of plans, and refuse those that do not fit their rows. */
class Tables {
  readonly wallets = new Map<WalletId, Wallet>()
  readonly leases = new Map<string, { wallet: WalletId; held: bigint }>()
  readonly charges = new Map<string, ChargeRecord>()
  readonly voids = new Set<string>()
  readonly holds = new Map<string, { amount: bigint; of: Spender }>()
  /** Open records of Idempotency-Keys by {@link claimName}, and whether they are completed. */
  readonly claims = new Map<string, boolean>()
  readonly entries = new Map<string, CallLogEntry>()
  /** The sum of the charges that usage counts. */
  used = 0n

  get rows(): SettlementRows {
    const standing = (id: string): StandingCharge | undefined => {
      const found = this.charges.get(id)
      const voided = this.voids.has(id)
      if (!found) return voided ? { account: null, key: null, amount: 0n, voided, usage: null } : undefined
      const { account, key, amount, budgets } = found
      return { account, key, amount, budgets, voided, usage: shareOfCharge(found) }
    }
    return {
      wallets: this.wallets,
      leases: this.leases,
      charges: { get: standing },
      holds: { get: (id) => this.holds.get(id)?.amount },
      owns: (claim) => this.claims.has(claimName(claim)),
    }
  }

  lease(id: string, wallet: WalletId, held: bigint): void {
    this.leases.set(id, { wallet, held })
    this.wallet(wallet).leased += held
  }

  hold(requestId: string, amount: bigint, of: Spender): void {
    this.holds.set(requestId, { amount, of })
    for (const id of walletsOf(of)) this.wallet(id).leased += amount
  }

  wallet(id: WalletId): Wallet {
    const found = this.wallets.get(id) ?? { spent: 0n, leased: 0n, overrun: 0n }
    this.wallets.set(id, found)
    return found
  }

  settle(...settlements: (Settlement | HoldRelease)[]): readonly string[] {
    const planned = plan(settlements, this.rows)
    this.apply(planned)
    return planned.results
  }

  apply(planned: SettlementPlan): void {
    for (const id of planned.openedWallets) this.wallet(id)
    for (const { id, spent, leased, overrun } of planned.wallets) {
      const wallet = this.wallets.get(id)
      assert.ok(wallet, `${id} is changed, and neither there nor opened`)
      wallet.spent += spent
      wallet.leased += leased
      wallet.overrun += overrun
    }
    for (const { lease: id, wallet, amount } of planned.draws) {
      const lease = this.leases.get(id)
      assert.ok(lease && lease.wallet === wallet && lease.held >= amount, `${id} does not hold ${amount}`)
      lease.held -= amount
    }
    for (const { charge: each, isUndone } of planned.charges) {
      assert.ok(!this.charges.has(each.requestId) && !this.voids.has(each.requestId), 'is charged once')
      this.charges.set(each.requestId, each)
      if (!isUndone) this.used += each.amount
    }
    for (const { requestId, amount, isFirst } of planned.voids) {
      assert.ok(!this.voids.has(requestId), 'is voided once')
      assert.equal(isFirst, !this.charges.has(requestId))
      assert.equal(amount, this.charges.get(requestId)?.amount ?? 0n)
      this.voids.add(requestId)
    }
    const freed = new Set(planned.freedClaims.map(claimName))
    for (const claim of planned.completedClaims) {
      assert.ok(this.claims.has(claimName(claim)) && !freed.has(claimName(claim)))
      this.claims.set(claimName(claim), true)
    }
    for (const claim of planned.freedClaims) this.claims.delete(claimName(claim))
    for (const { entry } of planned.entries) this.entries.set(entry.id, entry)
    for (const id of planned.closedHolds) assert.ok(this.holds.delete(id))
    for (const { charged } of planned.usage.undone) this.used -= charged
  }

  figures(id: WalletId): bigint[] {
    const { spent, leased, overrun } = this.wallet(id)
    return [spent, leased, overrun]
  }

  assertSound(): void {
    const spent = new Map<WalletId, bigint>()
    const leased = new Map<WalletId, bigint>()
    const add = (sums: Map<WalletId, bigint>, of: Spender, amount: bigint) => {
      for (const id of walletsOf(of)) sums.set(id, (sums.get(id) ?? 0n) + amount)
    }
    let used = 0n
    for (const [id, each] of this.charges) {
      if (this.voids.has(id)) continue
      add(spent, each, each.amount)
      used += each.amount
    }
    for (const { wallet, held } of this.leases.values()) {
      assert.ok(held >= 0n)
      leased.set(wallet, (leased.get(wallet) ?? 0n) + held)
    }
    for (const { amount, of } of this.holds.values()) add(leased, of, amount)
    for (const [id, wallet] of this.wallets) {
      assert.equal(wallet.spent, spent.get(id) ?? 0n, `${id} has spent the sum of its charges`)
      assert.equal(wallet.leased, leased.get(id) ?? 0n, `${id} has leased what its leases and holds come to`)
      assert.ok(wallet.overrun >= 0n)
    }
    assert.equal(this.used, used, 'usage has what charges come to')
  }
}

const ACME = accountWallet('acme')
const KEY = keyWallet('k')
const BUDGET = 'budget:b:1' as WalletId
const CLAIM = { id: 'record', owner: 'req', keepUntil: 5 }
const ENTRY = { id: 'req', status: 200, account: 'acme', key: 'k', billing: null } as unknown as CallLogEntry
const LOOKED_UP = { ...ENTRY, look_up: true } as unknown as CallLogEntry

const ONCE = charge('acme', 30n, {
  requestId: 'req',
  key: 'k',
  budgets: [BUDGET],
  claim: CLAIM,
  entry: ENTRY,
})
const UNDONE = voidOf(ONCE, { claim: CLAIM, entry: null })

function tables({ owned = true } = {}): Tables {
  const found = new Tables()
  if (owned) found.claims.set(claimName(CLAIM), false)
  return found
}

describe('the plan of a charge', () => {
  it('spends it from account, key and budget, completes its claim and writes its entry', () => {
    const found = tables()
    assert.deepEqual(found.settle(ONCE), ['written'])
    for (const id of [ACME, KEY, BUDGET]) assert.deepEqual(found.figures(id), [30n, 0n, 0n])
    assert.deepEqual([...found.claims.values(), ...found.entries.values()], [true, ENTRY])
  })

  it('opens the missing wallets, and no others', () => {
    const found = tables()
    found.wallet(KEY)
    assert.deepEqual(plan([ONCE], found.rows).openedWallets, [ACME, BUDGET])
  })

  it('writes only the entry if it is repeated, with any amount', () => {
    const found = tables()
    found.settle(ONCE)
    const again = plan([{ ...ONCE, amount: 99n }], found.rows)
    assert.deepEqual(again.results, ['known'])
    assert.deepEqual([again.charges, again.voids, again.draws], [[], [], []])
    assert.deepEqual(again.entries, [{ entry: ENTRY, unlessVoided: true }])
    // The account is locked, so that a void that is written at the same time comes before or after it.
    assert.deepEqual(again.wallets, [{ id: ACME, spent: 0n, leased: 0n, overrun: 0n }])
  })

  it('is fenced and writes nothing if its claim is lost', () => {
    const found = tables({ owned: false })
    found.lease('l', ACME, 50n)
    const { results, ...writes } = plan([{ ...ONCE, draws: [draw('l', ACME, 20n)] }], found.rows)
    assert.deepEqual(results, ['fenced'])
    const { usage, ...lists } = writes
    assert.deepEqual([Object.values(lists).flat(), Object.values(usage).flat()], [[], []])
  })

  it('is known if the charge is written although its claim is lost, and fenced if only a void is written', () => {
    const charged = tables({ owned: false })
    charged.settle({ ...ONCE, claim: null })
    assert.deepEqual(charged.settle(ONCE), ['known'])
    const voided = tables({ owned: false })
    voided.settle(UNDONE)
    assert.deepEqual(voided.settle(ONCE), ['fenced'])
    assert.deepEqual(voided.figures(ACME), [0n, 0n, 0n])
  })

  it('is not written after its void, and frees its claim', () => {
    const found = tables()
    found.settle({ ...UNDONE, claim: null })
    assert.deepEqual(found.settle(ONCE), ['known'])
    assert.deepEqual([found.figures(ACME), found.charges.size, found.claims.size], [[0n, 0n, 0n], 0, 0])
    assert.equal(found.entries.size, 0)
  })

  const draws: readonly [
    held: bigint | undefined,
    asked: bigint,
    left: bigint | undefined,
    figures: bigint[],
  ][] = [
    [50n, 20n, 30n, [30n, 30n, 0n]],
    [20n, 20n, 0n, [30n, 0n, 0n]],
    [1n, 20n, 0n, [30n, 0n, 19n]],
    [0n, 20n, 0n, [30n, 0n, 20n]],
    [undefined, 20n, undefined, [30n, 0n, 20n]],
  ]
  for (const [held, asked, left, figures] of draws) {
    it(`draws ${asked} from a lease that holds ${held}; the rest is an overrun`, () => {
      const found = tables()
      if (held !== undefined) found.lease('l', ACME, held)
      found.settle({ ...ONCE, draws: [draw('l', ACME, asked)] })
      assert.deepEqual([found.leases.get('l')?.held, found.figures(ACME)], [left, figures])
    })
  }

  it('draws nothing from a lease of another wallet, and nothing for a missing wallet', () => {
    const found = tables()
    found.lease('l', ACME, 50n)
    found.settle({ ...ONCE, draws: [draw('l', KEY, 20n), draw('l', 'account:nobody', 20n)] })
    assert.deepEqual([found.leases.get('l')?.held, found.figures(KEY)], [50n, [30n, 0n, 20n]])
    assert.equal(found.wallets.has('account:nobody'), false)
  })
})

describe('the plan of a void', () => {
  it('returns the charge once to all its payers', () => {
    const found = tables()
    found.settle(ONCE)
    assert.deepEqual(found.settle({ ...UNDONE, account: 'globex', key: null }), ['written'])
    for (const id of [ACME, KEY, BUDGET]) assert.deepEqual(found.figures(id), [0n, 0n, 0n])
    assert.deepEqual([found.wallets.has('account:globex'), found.claims.size, found.used], [false, 0, 0n])
    assert.deepEqual(found.settle(UNDONE), ['known'])
    assert.deepEqual(found.figures(ACME), [0n, 0n, 0n])
  })

  it('counts its call without a charge, unless it was already counted', () => {
    const entry = { ...ENTRY, created_at: '2026-01-01T00:00:00Z', duration_ms: 5, request: null }
    const undone = { ...UNDONE, entry: entry as unknown as CallLogEntry }
    const found = tables()
    assert.equal(plan([ONCE, undone], found.rows).usage.uncharged.length, 1)
    assert.equal(plan([ONCE, undone, undone], found.rows).usage.uncharged.length, 1)
  })

  it('that precedes its charge locks the account if it exists, and opens nothing', () => {
    const found = tables()
    assert.deepEqual(plan([UNDONE], found.rows).wallets, [])
    found.wallet(ACME)
    const { wallets, openedWallets } = plan([UNDONE], found.rows)
    assert.deepEqual([wallets.map(({ id }) => id), openedWallets], [[ACME], []])
  })
})

describe('the plan of a revoked charge', () => {
  const REVOKED: Settlement = { ...ONCE, kind: 'revoked', draws: [draw('l', ACME, 20n)] }
  const held = (found: Tables) => [found.leases.get('l')?.held, ...found.figures(ACME)]

  it('draws, is undone at once, adds nothing to usage, and frees its claim; a repetition changes nothing', () => {
    const found = tables()
    found.lease('l', ACME, 50n)
    assert.deepEqual(plan([REVOKED], found.rows).charges, [{ charge: REVOKED, isUndone: true }])
    assert.deepEqual(found.settle(REVOKED), ['written'])
    assert.deepEqual([held(found), found.claims.size], [[30n, 0n, 30n, 0n], 0])
    assert.deepEqual([found.settle(REVOKED), held(found)], [['known'], [30n, 0n, 30n, 0n]])
  })

  it('is undone if it was stored without an answer, and draws no more', () => {
    const found = tables()
    found.lease('l', ACME, 50n)
    found.settle({ ...REVOKED, kind: 'charge' })
    assert.deepEqual(found.settle(REVOKED), ['known'])
    assert.deepEqual(held(found), [30n, 0n, 30n, 0n])
  })

  it('is fenced if its claim is lost, and cannot be charged later', () => {
    const found = tables({ owned: false })
    found.lease('l', ACME, 50n)
    assert.deepEqual(found.settle(REVOKED), ['fenced'])
    assert.deepEqual([held(found), [...found.voids]], [[50n, 0n, 50n, 0n], ['req']])
  })
})

describe('the plan of a hold', () => {
  const OF = { account: 'acme', key: 'k', budgets: [BUDGET] }
  const closed = (held: bigint, amount: bigint) => {
    const found = tables()
    found.hold('req', held, OF)
    found.settle({ ...ONCE, amount })
    return [found.holds.size, ...found.figures(ACME), ...found.figures(BUDGET)]
  }

  it('ends with its cost, and any excess over the hold is an overrun', () => {
    assert.deepEqual(closed(8n, 0n), [0, 0n, 0n, 0n, 0n, 0n, 0n])
    assert.deepEqual(closed(8n, 8n), [0, 8n, 0n, 0n, 8n, 0n, 0n])
    assert.deepEqual(closed(8n, 11n), [0, 11n, 0n, 3n, 11n, 0n, 3n])
  })

  it('ends once without a charge if it is released', () => {
    const found = tables()
    found.hold('req', 8n, OF)
    const release: HoldRelease = { kind: 'release', requestId: 'req', ...OF }
    found.settle(release, release)
    found.settle(release)
    assert.deepEqual([found.holds.size, ...found.figures(ACME)], [0, 0n, 0n, 0n])
  })

  it('ends with an existing charge, which is not written again', () => {
    const found = tables()
    found.settle(ONCE)
    found.hold('req', 8n, OF)
    assert.deepEqual(found.settle(ONCE), ['known'])
    assert.deepEqual([found.holds.size, ...found.figures(ACME)], [0, 30n, 0n, 0n])
  })

  it('stays while a charge is fenced', () => {
    const found = tables({ owned: false })
    found.hold('req', 8n, OF)
    assert.deepEqual(found.settle(ONCE), ['fenced'])
    assert.deepEqual([found.holds.size, ...found.figures(ACME)], [1, 0n, 8n, 0n])
  })
})

const ACCOUNTS = ['acme', 'globex'] as const
const LEASED = [ACME, KEY, BUDGET, accountWallet('globex')] as const
const amount = fc.bigInt(0n, 40n)

const anyCall = fc.record({
  account: fc.constantFrom(...ACCOUNTS),
  key: fc.constantFrom(null, 'k'),
  budgets: fc.constantFrom([], [BUDGET]),
  amount,
  draws: fc.array(fc.record({ lease: fc.nat(4), wallet: fc.constantFrom(...LEASED), amount }), {
    maxLength: 2,
  }),
  claim: fc.constantFrom('none', 'held', 'lost'),
  hold: fc.option(amount),
  hasEntry: fc.boolean(),
})
const anyBooks = fc.record({
  calls: fc.array(anyCall, { minLength: 4, maxLength: 4 }),
  leases: fc.array(amount, { minLength: 4, maxLength: 4 }),
  knownWallets: fc.subarray([...LEASED]),
  batches: fc.array(
    fc.array(
      fc.record({
        call: fc.nat(3),
        kind: fc.constantFrom('charge', 'charge', 'charge', 'void', 'revoked', 'release'),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    { minLength: 1, maxLength: 4 },
  ),
})
type Books = typeof anyBooks extends fc.Arbitrary<infer T> ? T : never

/** Returns the tables that books begin with, and the batches that are settled. */
function begin({ calls, leases, knownWallets, batches }: Books) {
  const found = new Tables()
  for (const id of knownWallets) found.wallet(id)
  // One of the leases that calls draw from is missing.
  for (const [i, held] of leases.entries()) found.lease(`l${i}`, LEASED[i] as WalletId, held)
  const settlements = calls.map(({ draws, claim, hold, hasEntry, ...members }, i): Settlement => {
    const requestId = `req_${i}`
    const own = { id: `record_${i}`, owner: requestId, keepUntil: 5 }
    if (claim === 'held') found.claims.set(claimName(own), false)
    if (hold !== null && hold > 0n) found.hold(requestId, hold, members)
    return charge(members.account, members.amount, {
      ...members,
      requestId,
      draws: draws.map((each) => draw(`l${each.lease}`, each.wallet, each.amount)),
      claim: claim === 'none' ? null : own,
      entry: hasEntry ? { ...LOOKED_UP, id: requestId } : null,
    })
  })
  const all = batches.map((batch) =>
    batch.map(({ call, kind }): Settlement | HoldRelease => {
      const settlement = settlements[call] as Settlement
      if (kind === 'void') return voidOf(settlement)
      if (kind === 'release') return { kind, ...withoutKind(settlement) }
      return { ...settlement, kind: kind as 'charge' | 'revoked' }
    }),
  )
  return { found, batches: all }
}

function withoutKind({ requestId, account, key, budgets }: Settlement): Omit<HoldRelease, 'kind'> {
  return { requestId, account, key, budgets }
}

describe('plans of any settlements', () => {
  it('keep the sums of charges, leases, holds and usage, and charge each request id once', () => {
    fc.assert(
      fc.property(anyBooks, (books) => {
        const { found, batches } = begin(books)
        found.assertSound()
        for (const batch of batches) {
          found.settle(...batch)
          found.assertSound()
        }
      }),
      { numRuns: 100 },
    )
  })

  it('return results that match their writes', () => {
    fc.assert(
      fc.property(anyBooks, (books) => {
        const { found, batches } = begin(books)
        for (const settlement of batches.flat()) {
          const { requestId } = settlement
          const before = { charged: found.charges.has(requestId), voided: found.voids.has(requestId) }
          const claim = 'claim' in settlement ? settlement.claim : null
          const owned = claim === null || found.claims.has(claimName(claim))
          const planned = plan([settlement], found.rows)
          const [result] = planned.results
          found.apply(planned)
          const { kind } = settlement
          if (kind === 'release') assert.equal(result, 'written')
          else if (kind === 'void') assert.equal(result, before.voided ? 'known' : 'written')
          else if (before.charged) assert.equal(result, 'known')
          else if (!owned) assert.equal(result, 'fenced')
          else assert.equal(result, before.voided ? 'known' : 'written')
          const isCharge = kind === 'charge' || kind === 'revoked'
          assert.equal(planned.charges.length, isCharge && result === 'written' ? 1 : 0)
          if (result === 'fenced') assert.deepEqual([planned.draws, planned.charges], [[], []])
        }
      }),
      { numRuns: 100 },
    )
  })

  it('are the same for a batch as for its settlements one by one', () => {
    fc.assert(
      fc.property(anyBooks, (books) => {
        const [together, alone] = [begin(books), begin(books)]
        for (const [i, batch] of together.batches.entries()) {
          const results = together.found.settle(...batch)
          const each = (alone.batches[i] ?? []).flatMap((settlement) => alone.found.settle(settlement))
          assert.deepEqual(results, each)
          assert.deepEqual(together.found, alone.found)
        }
      }),
      { numRuns: 100 },
    )
  })

  it('do not change the given rows and settlements', () => {
    fc.assert(
      fc.property(anyBooks, (books) => {
        const { found, batches } = begin(books)
        for (const batch of batches) {
          const [rows, given] = [structuredClone(found), structuredClone(batch)]
          plan(batch, found.rows)
          assert.deepEqual([structuredClone(found), batch], [rows, given])
        }
      }),
    )
  })

  it('write the same for rows that were not read, if these have their usual values', () => {
    fc.assert(
      fc.property(fc.array(anyCall, { minLength: 1, maxLength: 4 }), (calls) => {
        const found = new Tables()
        for (const id of LEASED) found.wallet(id)
        for (const [i, wallet] of LEASED.entries()) found.lease(`l${i}`, wallet, 1000n)
        const settlements = calls.map(({ draws, claim, hold: _, hasEntry, ...members }, i) => {
          const requestId = `req_${i}`
          const own: IdempotencyClaim & { keepUntil: number } = {
            id: `record_${i}`,
            owner: requestId,
            keepUntil: 5,
          }
          if (claim !== 'none') found.claims.set(claimName(own), false)
          return charge(members.account, members.amount, {
            ...members,
            requestId,
            draws: draws.map(({ lease, amount: part }) =>
              draw(`l${lease % 4}`, LEASED[lease % 4] as WalletId, part),
            ),
            claim: claim === 'none' ? null : own,
            entry: hasEntry ? { ...LOOKED_UP, id: requestId } : null,
          })
        })
        assert.deepEqual(plan(settlements, usualRows(settlements)), plan(settlements, found.rows))
      }),
    )
  })
})
