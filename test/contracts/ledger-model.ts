import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  accountWallet,
  keyWallet,
  type LeaseChange,
  type Settlement,
  type WalletId,
} from '../../lib/ledger/index.ts'
import { charge, fresh, type LedgerUnderTest, voidOf } from './ledger-money.ts'
import { PlainLedger } from './plain-ledger.ts'

const amount = fc.bigInt(0n, 120n)
const leaseNumber = fc.nat(3)
const settlement = fc.record({
  request: fc.nat(5),
  kind: fc.constantFrom('charge' as const, 'charge' as const, 'void' as const, 'revoked' as const),
  amount: fc.bigInt(0n, 60n),
  account: fc.nat(1),
  key: fc.option(fc.nat(1)),
  draws: fc.array(fc.record({ lease: leaseNumber, amount: fc.bigInt(0n, 30n) }), { maxLength: 2 }),
})

const operation = fc.oneof(
  fc.record({ kind: fc.constant('take' as const), lease: leaseNumber, need: amount, want: amount }),
  fc.record({ kind: fc.constant('give' as const), lease: leaseNumber, amount }),
  fc.record({ kind: fc.constant('repeat' as const), lease: leaseNumber }),
  fc.record({ kind: fc.constant('renew' as const), leases: fc.array(leaseNumber, { maxLength: 4 }) }),
  fc.record({ kind: fc.constant('sweep' as const), lease: leaseNumber, late: fc.nat(1) }),
  fc.record({
    kind: fc.constant('settle' as const),
    batch: fc.array(settlement, { minLength: 1, maxLength: 5 }),
  }),
  fc.record({
    kind: fc.constant('deposit' as const),
    account: fc.nat(1),
    amount: fc.bigInt(0n, 2n),
    bill: fc.nat(2),
  }),
  fc.record({ kind: fc.constant('limit' as const), key: fc.nat(1), limited: fc.boolean(), quota: amount }),
)

/** The contract of a ledger for any operations in any order, through any handle: answers and rows follow the rules. */
export function modelContract(tested: () => LedgerUnderTest, runs: number): void {
  describe('any order of operations', () => {
    it('has the results and the state that the rules require', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
          const run = new Run()
          for (const [i, asked] of operations.entries()) {
            const { ledgers } = tested()
            await run.perform(ledgers[i % ledgers.length] ?? ledgers[0], asked)
          }
          await run.compare(tested().ledgers[0])
        }),
        { numRuns: runs },
      )
    })
  })
}

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never
type Tested = LedgerUnderTest['ledgers'][0]

/** Operations on a few wallets, leases and calls of their own. */
class Run {
  readonly #model = new PlainLedger()
  readonly #accounts = [fresh('acme'), fresh('acme')] as const
  readonly #keys = [fresh('key'), fresh('key')] as const
  /** Which wallet each numbered lease is on. */
  readonly #wallets: readonly WalletId[] = [
    accountWallet(this.#accounts[0]),
    accountWallet(this.#accounts[0]),
    accountWallet(this.#accounts[1]),
    keyWallet(this.#keys[0]),
  ]
  readonly #ids = this.#wallets.map(() => fresh('lease'))
  readonly #last: (LeaseChange | undefined)[] = this.#wallets.map(() => undefined)
  readonly #seqs = this.#wallets.map(() => 0)
  readonly #requests = Array.from({ length: 6 }, () => fresh('req'))

  async perform(ledger: Tested, asked: Operation): Promise<void> {
    const model = this.#model
    switch (asked.kind) {
      case 'take':
        return this.#change(ledger, asked.lease, { kind: 'take', need: asked.need, want: asked.want })
      case 'give':
        return this.#change(ledger, asked.lease, { kind: 'give', amount: asked.amount })
      case 'repeat': {
        const change = this.#last[asked.lease]
        if (change) assert.deepEqual(await ledger.change('p', [change]), [model.change(change)])
        return
      }
      case 'renew': {
        const ids = asked.leases.map((n) => this.#id(n))
        assert.deepEqual(await ledger.renew(ids, 5), model.renew(ids))
        return
      }
      case 'sweep': {
        const id = this.#id(asked.lease)
        const beats = (model.beats(id) ?? 1) - asked.late
        assert.equal(await ledger.sweep(id, beats), model.sweep(id, beats))
        return
      }
      case 'settle': {
        const batch = asked.batch.map((one) => this.#settlement(one))
        assert.deepEqual(await ledger.settle(batch), model.settle(batch))
        return
      }
      case 'deposit': {
        const account = this.#accounts[asked.account] as string
        const given = asked.amount * 500n
        const bill = `bill ${asked.bill}`
        assert.equal(await ledger.deposit(account, given, bill, 1), model.deposit(account, given, bill))
        return
      }
      case 'limit': {
        const wallet = keyWallet(this.#keys[asked.key] as string)
        await ledger.setLimit(wallet, { limited: asked.limited, quota: asked.quota })
        model.limit(wallet, asked.limited, asked.quota)
      }
    }
  }

  async compare(ledger: Tested): Promise<void> {
    const ids = [...this.#accounts.map(accountWallet), ...this.#keys.map(keyWallet)]
    assert.deepEqual(await ledger.wallets(ids), this.#model.statements(ids))
    const own = new Set(this.#ids)
    const leases = (await ledger.leases()).filter(({ id }) => own.has(id))
    const held = new Map(leases.map(({ id, ...lease }) => [id, [lease.wallet, lease.held, lease.beats]]))
    assert.deepEqual(held, this.#model.open(this.#ids))
    assert.deepEqual((await ledger.check()).violations, [])
  }

  /** Each is numbered on, but after a take that opened nothing. One that is gone makes way for a new one. */
  async #change(ledger: Tested, n: number, change: LeaseChange['change']): Promise<void> {
    const asked = { lease: this.#id(n), wallet: this.#wallets[n] as WalletId, seq: this.#seq(n) + 1, change }
    const expected = this.#model.change(asked)
    assert.deepEqual(await ledger.change('p', [asked]), [expected])
    this.#last[n] = asked
    if (this.#model.beats(asked.lease) !== undefined) this.#seqs[n] = asked.seq
    if (!expected.lost) return
    this.#ids[n] = fresh('lease')
    this.#seqs[n] = 0
  }

  #settlement(asked: typeof settlement extends fc.Arbitrary<infer T> ? T : never): Settlement {
    const made = charge(this.#accounts[asked.account] as string, asked.amount, {
      requestId: this.#requests[asked.request] as string,
      key: asked.key === null ? null : (this.#keys[asked.key] as string),
      draws: asked.draws.map((draw) => ({
        lease: this.#id(draw.lease),
        wallet: this.#wallets[draw.lease] as WalletId,
        amount: draw.amount,
      })),
    })
    return asked.kind === 'void' ? voidOf(made) : { ...made, kind: asked.kind }
  }

  #id(n: number): string {
    return this.#ids[n] as string
  }

  #seq(n: number): number {
    return this.#seqs[n] as number
  }
}
