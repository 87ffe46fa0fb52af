import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { amountOf } from '../../lib/core/call/index.ts'
import type { Observed } from '../../lib/endpoints/video/index.ts'
import { entryAt } from './call-store.ts'
import { assertSound, charge } from './ledger-money.ts'
import {
  created,
  intended,
  intentOf,
  moneyOf,
  NOON,
  PRICE,
  payer,
  type TasksUnderTest,
  taken,
} from './task-samples.ts'

/** The contract of the charges of tasks that succeed. */
export function taskChargesContract(tested: () => TasksUnderTest): void {
  const first = () => tested().stores[0]
  const other = () => tested().stores.at(-1) ?? first()

  describe('a success', () => {
    it('is charged once, at its true cost, and the rest of the hold is released', async () => {
      const who = await payer(tested(), 1000n, 500n)
      const { id, requestId } = await taken(first(), who)
      const seen = { state: 'succeeded', usage: { seconds: 5 } } as const
      const results: (Observed | undefined)[] = []
      for (let round = 0; round < 10; round++) {
        const polls = Array.from({ length: 10 }, (_, i) => (i % 2 ? first() : other()))
        results.push(...(await Promise.all(polls.map((store) => store.observe(id, seen, NOON)))))
      }
      assert.equal(results.filter((answer) => answer?.finished).length, 1)
      assert.deepEqual(await moneyOf(tested(), who), [
        [1000n, 55n, 0n, 0n],
        [500n, 55n, 0n, 0n],
      ])
      const { task } = results[0] ?? {}
      assert.deepEqual(task?.charge, {
        amount: 55n,
        items: [
          { unit: 'request', quantity: 1, price: 5n },
          { unit: 'second', quantity: 5, price: 10n },
        ],
        source: 'measured',
      })
      assert.deepEqual([task?.requestId, task?.progress], [requestId, 100])
      await assertSound(tested().ledger)
    })

    it('of a request that is already charged is not charged again, and its hold is closed', async () => {
      const who = await payer(tested(), 1000n)
      const { id, requestId, ...task } = await taken(first(), who)
      const before = charge(who.account, 5n, { requestId, key: task.key })
      await tested().ledger.settle([before])
      await first().observe(id, { state: 'succeeded' }, NOON)
      assert.deepEqual(await moneyOf(tested(), who), [
        [1000n, 5n, 0n, 0n],
        [0n, 5n, 0n, 0n],
      ])
      await assertSound(tested().ledger)
    })

    it('records the operator’s cost, by the line that made it', async () => {
      const who = await payer(tested(), 1000n)
      const lineCost = { ...PRICE, perSecond: 4n }
      const intent = intentOf(who, { lineCost: PRICE })
      await intended(first(), intent)
      const target = { line: 'cheap', upstreamModel: 'm', price: PRICE, lineCost, answerBy: NOON + 60_000 }
      await other().redirect(intent.id, target)
      const entry = entryAt(NOON, { id: intent.requestId, account: who.account })
      await first().created(intent.id, created({ entry }), NOON)
      if (!first().settlesRecords) await tested().calls.append([entry])
      const seen = { state: 'succeeded', usage: { seconds: 5 } } as const
      const { task } = (await first().observe(intent.id, seen, NOON)) ?? {}
      assert.deepEqual([task?.charge?.amount, task?.charge?.cost], [55n, 25n])
      const logged = await tested().calls.find(intent.requestId)
      assert.equal(logged?.billing?.cost, '0.000000025')
    })

    it('beyond the hold is charged in full', async () => {
      const who = await payer(tested(), 100n, 90n)
      const { id } = await taken(first(), who)
      await first().observe(id, { state: 'succeeded', usage: { seconds: 12 } }, NOON)
      assert.deepEqual(await moneyOf(tested(), who), [
        [100n, 125n, 0n, 40n],
        [90n, 125n, 0n, 40n],
      ])
      await assertSound(tested().ledger)
    })

    it('is charged at most twice the hold, for any reported usage', async () => {
      for (const usage of [{ seconds: 17 }, { seconds: 10_000 }, { tokens: 900_000_000 }]) {
        const who = await payer(tested(), 85n)
        const price = { ...PRICE, ...('tokens' in usage && { outputPerMillion: 1_000_000n }) }
        const intent = intentOf(who, { price })
        const entry = entryAt(NOON, { id: intent.requestId, account: who.account })
        await intended(first(), intent)
        await first().created(intent.id, created({ entry }), NOON)
        if (!first().settlesRecords) await tested().calls.append([entry])
        const { task } = (await first().observe(intent.id, { state: 'succeeded', usage }, NOON)) ?? {}
        assert.deepEqual([task?.charge?.amount, task?.charge?.source], [170n, 'bounded'])
        assert.equal(amountOf(task?.charge?.items ?? []), 170n, 'its terms add up to it')
        assert.deepEqual((await moneyOf(tested(), who))[0], [85n, 170n, 0n, 85n])
        const told = (await tested().calls.find(intent.requestId))?.usage
        const { tokens: output_tokens = 0, seconds = 8 }: { tokens?: number; seconds?: number } = usage
        assert.deepEqual([told?.source, told?.reported], ['bounded', { output_tokens, seconds }])
      }
      await assertSound(tested().ledger)
    })

    it('ignores reported values that no video can have', async () => {
      const price = { ...PRICE, perSecond: 0n, outputPerMillion: 1_000_000n }
      const odd = [-1, 0, Number.NaN, Number.POSITIVE_INFINITY, 1e300, 1e9]
      for (const facts of odd.flatMap((n) => [
        { seconds: n },
        { framesPerSecond: n },
        { seconds: n, framesPerSecond: n },
      ])) {
        const who = await payer(tested(), 1_000_000n)
        const { id } = await taken(first(), who, { price, hold: 216_005n })
        await first().observe(id, { state: 'running', facts }, NOON)
        const { task } = (await first().observe(id, { state: 'succeeded', facts }, NOON)) ?? {}
        assert.deepEqual([task?.charge?.amount, task?.facts.seconds], [172_805n, 8], JSON.stringify(facts))
      }
      await assertSound(tested().ledger)
    })

    it('of a free video is recorded as a charge of zero, with its usage and cost', async () => {
      const who = await payer(tested(), 0n)
      const free = { ...PRICE, perRequest: 0n, perSecond: 0n }
      const { charges } = await tested().ledger.check()
      const { id } = await taken(first(), who, { price: free, hold: 0n })
      const over = await first().observe(id, { state: 'succeeded', usage: { seconds: 5 } }, NOON)
      assert.equal(over?.finished, true)
      await first().observe(id, { state: 'succeeded', usage: { seconds: 5 } }, NOON)
      assert.equal((await tested().ledger.check()).charges, charges + 1)
      assert.deepEqual(await moneyOf(tested(), who), [
        [0n, 0n, 0n, 0n],
        [0n, 0n, 0n, 0n],
      ])
      await assertSound(tested().ledger)
    })

    it('without reported usage is charged as it was requested', async () => {
      const who = await payer(tested(), 100n)
      const { id } = await taken(first(), who)
      const { task } = (await first().observe(id, { state: 'succeeded' }, NOON)) ?? {}
      assert.deepEqual([task?.charge?.amount, task?.charge?.source], [85n, 'estimated'])
    })

    it('is charged by its tokens if they are reported and have a price', async () => {
      const price = { ...PRICE, outputPerMillion: 2_000_000n }
      const who = await payer(tested(), 1000n)
      for (const [usage, amount] of [
        [{ tokens: 3, seconds: 8 }, 11n],
        [{ tokens: 0, seconds: 8 }, 5n],
        [{ tokens: null, seconds: 8 }, 85n],
      ] as const) {
        const { id } = await taken(first(), who, { price })
        const { task } = (await first().observe(id, { state: 'succeeded', usage }, NOON)) ?? {}
        assert.equal(task?.charge?.amount, amount)
      }
    })

    it('with invalid reported usage is charged as it was requested', async () => {
      const who = await payer(tested(), 1000n)
      for (const seconds of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e15]) {
        const { id } = await taken(first(), who)
        const { task } = (await first().observe(id, { state: 'succeeded', usage: { seconds } }, NOON)) ?? {}
        assert.equal(task?.charge?.amount, 85n)
      }
    })

    it('appears in the log entry of the call that created it', async () => {
      const { calls } = tested()
      const who = await payer(tested(), 1000n)
      const intent = intentOf(who)
      const entry = entryAt(NOON, { id: intent.requestId, response_body: '{"id":"video_1"}' })
      await intended(first(), intent)
      await first().created(intent.id, created({ entry }), NOON)
      // Where the store does not write it, the log's own writer has.
      if (!first().settlesRecords) await calls.append([entry])
      await first().observe(intent.id, { state: 'succeeded', usage: { seconds: 5 } }, NOON)
      const logged = await calls.find(intent.requestId)
      assert.deepEqual(logged?.billing, {
        currency: 'USD',
        reserved: '0.000000085',
        charged: '0.000000055',
        required: null,
        available: null,
        items: [
          { unit: 'request', quantity: 1, price: '0.000000005' },
          { unit: 'second', quantity: 5, price: '0.00000001' },
        ],
      })
      assert.deepEqual([logged?.usage?.seconds, logged?.usage?.source], [5, 'measured'])
      assert.equal(logged?.response_body, '{"id":"video_1"}')
    })
  })
}
