import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NANOS_PER_UNIT } from '../../lib/core/catalog/index.ts'
import { type AccountStoreUnderTest, byFirst, figuresOf, originOf, PREPAID } from './account-money.ts'

/** The contract of every store of accounts for deposits and adjustments. */
export function depositsContract(tested: () => AccountStoreUnderTest): void {
  describe('deposits and adjustments', () => {
    it('takes a deposit once per reference, and records when the money arrived', async () => {
      const { accounts } = tested()
      await accounts.create('acme', PREPAID, originOf())
      await accounts.create('globex', PREPAID, originOf())
      const origin = originOf('ada')
      const reference = 'invoice 7 \u{1f9fe}'
      assert.deepEqual(await accounts.deposit('acme', 5n, reference, origin), {
        kind: 'deposited',
        at: origin.at,
        reason: null,
      })
      assert.deepEqual(await accounts.deposit('acme', 5n, reference, originOf()), {
        kind: 'known',
        at: origin.at,
        reason: null,
      })
      assert.deepEqual(await accounts.deposit('acme', 6n, reference, originOf()), { kind: 'conflict' })
      assert.equal((await figuresOf(tested(), 'acme'))?.funds, 5n)
      const other = await accounts.deposit('globex', 6n, reference, originOf())
      assert.equal(other.kind, 'deposited', 'the references of one account are not those of another')
      const recorded = (await tested().changes()).filter(({ action }) => action === 'account.deposited')
      assert.equal(recorded.length, 2)
      assert.deepEqual(recorded[0], {
        ...origin,
        action: 'account.deposited',
        subject: 'acme',
        before: { deposited: '0' },
        after: { deposited: '0.000000005', amount: '0.000000005', reference },
      })
    })

    it('adjusts a balance once per reference, also below zero, and records the reason', async () => {
      const { accounts } = tested()
      for (const id of ['acme', 'globex']) await accounts.create(id, PREPAID, originOf())
      await accounts.deposit('acme', 5n, 'invoice', originOf())
      await accounts.deposit('globex', 5n, 'credit note', originOf())
      const origin = originOf('ada')
      const adjust = (
        amount: bigint,
        reference: string,
        reason: string | null = 'refunded',
        by = originOf(),
      ) => accounts.deposit('acme', amount, reference, by, reason)
      const made = { at: origin.at, reason: 'refunded' }
      assert.deepEqual(await adjust(-7n, 'credit note', 'refunded', origin), { kind: 'deposited', ...made })
      assert.deepEqual(await adjust(-7n, 'credit note', 'other words'), { kind: 'known', ...made })
      for (const [amount, reference, reason] of [
        [-8n, 'credit note', 'refunded'],
        [7n, 'credit note', 'refunded'],
        [-7n, 'credit note', null],
        [5n, 'invoice', 'refunded'],
      ] as const)
        assert.deepEqual(
          await adjust(amount, reference, reason),
          { kind: 'conflict' },
          `${amount} ${reference}`,
        )
      assert.deepEqual(await figuresOf(tested(), 'acme'), { funds: -2n, spent: 0n, leased: 0n })
      assert.deepEqual(await figuresOf(tested(), 'globex'), { funds: 5n, spent: 0n, leased: 0n })
      assert.deepEqual(
        (await tested().changes()).filter(({ action }) => action === 'account.adjusted'),
        [
          {
            ...origin,
            action: 'account.adjusted',
            subject: 'acme',
            before: { deposited: '0.000000005' },
            after: {
              deposited: '-0.000000002',
              amount: '-0.000000007',
              reference: 'credit note',
              reason: 'refunded',
            },
          },
        ],
      )
      const { violations, deposited } = await tested().ledger.check()
      assert.deepEqual([violations, deposited], [[], 3n])
    })

    it('takes concurrent adjustments and deposits once per reference', async () => {
      const { accounts } = tested()
      await accounts.create('acme', PREPAID, originOf())
      const kinds = await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          const reason = i % 2 === 0 ? 'refunded' : null
          const { kind } = await accounts.deposit('acme', 3n, `reference ${i % 4}`, originOf(), reason)
          return [i % 4, kind]
        }),
      )
      assert.equal(kinds.filter(([, kind]) => kind === 'deposited').length, 4)
      assert.equal(kinds.filter(([, kind]) => kind === 'known').length, 36)
      assert.equal((await figuresOf(tested(), 'acme'))?.funds, 12n)
      assert.deepEqual((await tested().ledger.check()).violations, [])
    })

    it('takes no deposit for an unknown account', async () => {
      const { accounts } = tested()
      assert.deepEqual(await accounts.deposit('nobody', 5n, 'r', originOf()), { kind: 'no_account' })
      assert.equal(await figuresOf(tested(), 'nobody'), undefined)
      assert.deepEqual(await tested().changes(), [])
    })

    it('takes at most 64 bits of nano-units', async () => {
      const { accounts } = tested()
      const most = 2n ** 63n - 1n
      await accounts.create('acme', PREPAID, originOf())
      assert.equal((await accounts.deposit('acme', most - 1n, 'first', originOf())).kind, 'deposited')
      assert.deepEqual(await accounts.deposit('acme', 2n, 'second', originOf()), { kind: 'too_much' })
      assert.equal((await figuresOf(tested(), 'acme'))?.funds, most - 1n)
      assert.equal((await accounts.deposit('acme', most - 1n, 'first', originOf())).kind, 'known')
      assert.equal((await accounts.deposit('acme', 1n, 'second', originOf())).kind, 'deposited')
      assert.equal((await figuresOf(tested(), 'acme'))?.funds, most)
      await accounts.create('debtor', PREPAID, originOf())
      const adjust = (amount: bigint, reference: string) =>
        accounts.deposit('debtor', amount, reference, originOf(), 'fee')
      assert.equal((await adjust(-most, 'first')).kind, 'deposited')
      assert.deepEqual(await adjust(-1n, 'second'), { kind: 'too_much' })
      assert.equal((await figuresOf(tested(), 'debtor'))?.funds, -most)
    })

    it('takes concurrent deposits once per reference', async () => {
      const { accounts } = tested()
      await accounts.create('acme', PREPAID, originOf())
      const asked = Array.from({ length: 40 }, (_, i) =>
        accounts.deposit('acme', NANOS_PER_UNIT, `reference ${i % 10}`, originOf()),
      )
      const kinds = (await Promise.all(asked)).map(({ kind }) => kind)
      assert.equal(kinds.filter((kind) => kind === 'deposited').length, 10)
      assert.equal(kinds.filter((kind) => kind === 'known').length, 30)
      assert.equal((await figuresOf(tested(), 'acme'))?.funds, 10n * NANOS_PER_UNIT)
      const recorded = (await tested().changes()).filter(({ action }) => action === 'account.deposited')
      assert.deepEqual(
        recorded
          .map(({ before, after }) => [depositedIn(before), depositedIn(after)].map(Number))
          .sort(byFirst),
        Array.from({ length: 10 }, (_, i) => [i, i + 1]),
      )
    })
  })
}

function depositedIn(side: object | null): string | undefined {
  return (side as { deposited?: string } | null)?.deposited
}
