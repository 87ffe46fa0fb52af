import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { newRequestId } from '../../lib/core/call/index.ts'
import { tagsOf } from '../../lib/core/catalog/index.ts'
import {
  MAX_FINE_ROWS,
  NOT_KNOWN,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
} from '../../lib/core/usage/index.ts'
import type { Ledger, LedgerAdmin, Settlement } from '../../lib/ledger/index.ts'
import type { CallStore } from '../../lib/middleware/call-log/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { usageByMinute } from './usage-by-minute.ts'
import {
  at,
  type Counted,
  counted,
  countedOf,
  expected,
  figures,
  GROUPINGS,
  HOUR,
  isOf,
  refusedEntry,
  SPAN,
  START,
  settlementOf,
} from './usage-model.ts'
import { usageOfFreeCalls } from './usage-of-free-calls.ts'

/** The ledgers and call stores that count usage, as two processes have them, and the store that reads it. */
export interface UsageUnderTest {
  readonly ledgers: readonly [Ledger & LedgerAdmin, ...(Ledger & LedgerAdmin)[]]
  readonly calls: CallStore
  readonly usage: UsageStore
  close(): Promise<void>
}

/** The contract of every ledger and call store for usage, whatever they keep it in. */
export function usageContract(
  name: string,
  open: () => Promise<UsageUnderTest>,
  skip: string | false = false,
): void {
  describe(`usage: ${name}`, { skip }, () => {
    let tried: UsageUnderTest
    const cleanUp = cleaningUp()
    const all: Counted[] = []
    before(async () => {
      tried = await open()
      cleanUp.after(() => tried.close())
    })

    it('is the sum of the charges, less the voids, and the calls without a charge, in any grouping', async () => {
      const step = fc.record({
        charges: fc.array(
          fc.record({
            call: counted,
            voided: fc.constantFrom('no', 'no', 'later', 'first', 'both', 'at once', 'again'),
          }),
          {
            maxLength: 12,
          },
        ),
        refused: fc.array(fc.record({ call: counted, repeats: fc.nat(3) }), { maxLength: 4 }),
      })
      await fc.assert(
        fc.asyncProperty(step, async ({ charges, refused }) => {
          const made = charges.map(({ call, voided }) => ({ call, voided, id: newRequestId(call.at) }))
          const charge = made.map(({ call, voided, id }) =>
            settlementOf(call, voided === 'at once' ? 'revoked' : 'charge', id),
          )
          const voids = (when: string, kind: Settlement['kind'] = 'void') =>
            made.filter(({ voided }) => voided === when).map(({ call, id }) => settlementOf(call, kind, id))
          const again = voids('again', 'revoked')
          const entries = refused.map(({ call, repeats }) => refusedEntry(call, repeats))
          const [one, other = one] = tried.ledgers
          await one.settle(voids('first'))
          await Promise.all([
            one.settle(charge.slice(0, 6)),
            other.settle(charge.slice(6)),
            tried.calls.append(entries),
          ])
          // Each of these again changes nothing.
          await Promise.all([other.settle(charge), one.settle(voids('later')), tried.calls.append(entries)])
          await other.settle([...voids('later'), ...voids('both'), ...again])
          await one.settle([...charge, ...voids('both'), ...again])
          for (const { call, voided } of charges) if (voided === 'no') all.push(call)
          for (const entry of entries) all.push(countedOf(entry))
        }),
        { numRuns: 15, endOnFailure: true },
      )
      for (const groupBy of GROUPINGS)
        assert.deepEqual(await allRows(tried.usage, { groupBy }), expected(all, groupBy), String(groupBy))
      for (const ledger of tried.ledgers) assert.deepEqual((await ledger.check()).violations, [])
      const { spent } = await tried.ledgers[0].check()
      assert.equal(
        spent,
        all.reduce((sum, { charged }) => sum + charged, 0n),
      )
    })

    it('of one account, user or tag contains nothing of any other, in any span of hours', async () => {
      const filters: Partial<UsageQuery>[] = [
        { account: 'acme' },
        { account: 'globex', user: 'Bob' },
        { tags: { env: "p'r%o$d" } },
        { key: 'k1', model: 'small', line: 'eu' },
        { account: 'nobody' },
        { user: '' },
        { key: '', model: '' },
      ]
      const spans = [
        [START, START + SPAN],
        [START + 2 * HOUR, START + 30 * HOUR],
        [START + 3 * HOUR, START + 52 * HOUR],
        [START + 5 * HOUR, START + 6 * HOUR],
        // Whole months, with and without rests, and a time that is not over.
        [Date.UTC(2026, 0), Date.UTC(2026, 1)],
        [Date.UTC(2025, 11, 31), Date.UTC(2026, 2, 1, 1)],
        [START + HOUR, Math.ceil(Date.now() / HOUR + 1) * HOUR],
      ] as const
      // Each filter and each span is tried with each grouping.
      const groupings = [['account', 'user'], ['month', 'tag:team'], ['day', 'user'], ['model']] as const
      for (const [f, filter] of filters.entries())
        for (const [s, [from, to]] of spans.entries()) {
          const fits = all.filter((call) => at(call, from, to) && isOf(call, filter))
          const groupBy = groupings[(f + s) % groupings.length] ?? []
          assert.deepEqual(
            await allRows(tried.usage, { ...filter, from, to, groupBy }, 1000),
            expected(fits, groupBy),
            `${JSON.stringify(filter)} ${from} ${to} ${groupBy}`,
          )
        }
    })

    it('of an account that invents users is complete, without the excess users, beside others', async () => {
      const [ledger] = tried.ledgers
      // The ledgers of one process share the number of users that they distinguish.
      const [many, other] = [`many-${name}`, `other-${name}`]
      const hour = START + 4 * HOUR
      const made = Array.from({ length: MAX_FINE_ROWS + 150 }, (_, i) => {
        const usage = { ...NOT_KNOWN, user: `user-${i}`, tags: tagsOf([['session', `${i}`]]), inputTokens: i }
        return { at: hour + i, account: many, key: null, usage, charged: 1000n + BigInt(i), cost: 1n }
      })
      const charges = made.map((call) => settlementOf(call, 'charge', newRequestId(call.at)))
      for (let i = 0; i < charges.length; i += 500) await ledger.settle(charges.slice(i, i + 500))
      const beside = { ...(made.at(-1) as Counted), account: other }
      await ledger.settle([settlementOf(beside, 'charge', newRequestId(beside.at))])
      const later = { ...(made.at(-1) as Counted), at: hour + HOUR }
      await ledger.settle([settlementOf(later, 'charge', newRequestId(later.at))])

      const read = async (account: string, filter: Partial<UsageQuery> = {}) =>
        tried.usage.read({
          from: hour,
          to: hour + 2 * HOUR,
          groupBy: ['hour', 'user'],
          account,
          limit: 5000,
          ...filter,
        })
      const users = await read(many)
      assert.equal(users.filter(({ groups }) => groups[0] === hour).length, MAX_FINE_ROWS + 1)
      const rest = users.find(({ groups }) => groups[0] === hour && groups[1] === '')
      assert.equal(rest?.sums.requests, 150)
      assert.deepEqual(
        (await read(other)).map(({ groups }) => groups[1]),
        [beside.usage.user],
      )
      assert.deepEqual(
        users.at(-1)?.groups,
        [hour + HOUR, beside.usage.user],
        'the next hour tells apart again',
      )
      const [total] = await read(many, { groupBy: [] })
      assert.equal(total?.sums.requests, made.length + 1)

      // An undone charge is subtracted from the hour in which it was counted.
      for (let i = 0; i < charges.length; i += 500)
        await ledger.settle(
          charges.slice(i, i + 500).map((each) => ({ ...each, kind: 'void', amount: 0n, basis: null })),
        )
      assert.deepEqual(
        (await read(many)).map(({ groups }) => groups),
        [[hour + HOUR, beside.usage.user]],
      )
      assert.deepEqual((await ledger.check()).violations, [])
    })

    it('of an empty time is empty, in any grouping', async () => {
      for (const to of [START, START - HOUR])
        for (const groupBy of [[], ['hour'], ['user'], ['day', 'model']] as const)
          assert.deepEqual(
            await tried.usage.read({ from: START, to, groupBy, limit: 10 }),
            [],
            `by ${groupBy}`,
          )
    })

    usageOfFreeCalls(() => tried)

    usageByMinute(() => tried)

    it('of all accounts may exceed the largest balance', async () => {
      const [ledger] = tried.ledgers
      const at = START + 100 * HOUR
      const usage = { ...NOT_KNOWN, requests: 1 }
      const most = 2n ** 63n - 1n
      const charges = ['rich', 'richer', 'richest'].map((account) => {
        const call = { at, account, key: null, charged: most, cost: most - 7n, usage }
        return settlementOf(call, 'charge', newRequestId(at))
      })
      await ledger.settle(charges)
      const span = { from: at - HOUR, to: at + HOUR, limit: 10 }
      for (const groupBy of [[], ['day'], ['user'], ['model', 'day']] as const) {
        const [all] = await tried.usage.read({ ...span, groupBy })
        assert.deepEqual([all?.sums.charged, all?.sums.cost], [3n * most, 3n * (most - 7n)], `by ${groupBy}`)
      }
      // A sum of nothing is none, however its halves are.
      await ledger.settle(charges.map((each) => ({ ...each, kind: 'void', amount: 0n, basis: null })))
      assert.deepEqual(await tried.usage.read({ ...span, groupBy: [] }), [])
    })
  })
}

/** All rows, page by page. */
async function allRows(
  usage: UsageStore,
  query: Partial<UsageQuery> & Pick<UsageQuery, 'groupBy'>,
  limit = 7,
) {
  const rows: UsageRow[] = []
  for (;;) {
    const after = rows.at(-1)?.groups
    const page = await usage.read({ from: START, to: START + SPAN, ...query, after, limit })
    rows.push(...page)
    if (page.length < limit)
      return rows.map(({ groups, sums }) => [...groups, figures({ ...sums })].join('|'))
  }
}
