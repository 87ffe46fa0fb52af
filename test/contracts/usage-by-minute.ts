import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { newRequestId } from '../../lib/core/call/index.ts'
import type { UsageQuery, UsageStore } from '../../lib/core/usage/index.ts'
import type { Ledger, LedgerAdmin } from '../../lib/ledger/index.ts'
import type { CallStore } from '../../lib/middleware/call-log/index.ts'
import {
  at,
  type Counted,
  counted,
  expected,
  figures,
  HOUR,
  isOf,
  refusedEntry,
  settlementOf,
} from './usage-model.ts'

const MINUTE = 60_000
const ACCOUNTS = ['minutes-acme', 'minutes-globex']

/** The parts that count usage, and the store that reads it. */
interface CountedUsage {
  readonly ledgers: readonly [Ledger & LedgerAdmin, ...unknown[]]
  readonly calls: CallStore
  readonly usage: UsageStore
}

/** The usage of the last hours, by minutes and in ranges of minutes. */
export function usageByMinute(tested: () => CountedUsage): void {
  it('is exact to the minute in which each call began for the last hours, in any grouping', async () => {
    const [ledger] = tested().ledgers
    const end = Math.floor(Date.now() / MINUTE) * MINUTE
    const start = Math.floor(end / HOUR) * HOUR - 2 * HOUR
    const all: Counted[] = fc
      .sample(counted, { numRuns: 120, seed: 7 })
      .map((call, i) => ({ ...call, at: start + i * 61_234, account: ACCOUNTS[i % 2] as string }))
      .filter((call) => call.at < end)
    // A call is charged when it ends, long after the minute in which it began.
    const charges = all.map(({ at: startedAt, ...call }) =>
      settlementOf(
        { ...call, at: startedAt + 5 * MINUTE, usage: { ...call.usage, startedAt } },
        'charge',
        newRequestId(startedAt),
      ),
    )
    const undone = all.slice(0, 10).map((call) => {
      const usage = { ...call.usage, startedAt: call.at }
      return settlementOf({ ...call, at: call.at + 5 * MINUTE, usage }, 'charge', newRequestId(call.at))
    })
    const refused = all.slice(0, 20).map((call) => ({ ...call, usage: { ...call.usage, failed: 0 } }))
    await tested().calls.append(refused.map((call) => refusedEntry(call, 2)))
    await ledger.settle([...charges, ...undone])
    await ledger.settle(undone.map((each) => ({ ...each, kind: 'void', amount: 0n, basis: null })))
    for (const call of refused) {
      const none = { ...call.usage, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, images: 0 }
      const usage = { ...none, seconds: 0, durationMs: null, requests: 3, refused: 3 }
      all.push({ ...call, charged: 0n, cost: 0n, usage })
    }
    const spans = [
      [start, end],
      [end - 15 * MINUTE, end],
      [start + 7 * MINUTE, start + HOUR + 3 * MINUTE],
      [start + 20 * MINUTE, start + 35 * MINUTE],
      // The future is empty.
      [start + 20 * MINUTE, end + 9 * HOUR],
    ] as const
    const filters: Partial<UsageQuery>[] = [
      ...ACCOUNTS.map((account) => ({ account })),
      { account: 'minutes-acme', user: 'Bob' },
      { account: 'minutes-globex', tags: { team: 'ads' } },
      { account: 'minutes-acme', model: 'small', line: 'eu', key: 'k1' },
    ]
    const groupings = [
      ['minute'],
      ['minute', 'user'],
      ['model', 'minute'],
      ['hour', 'line'],
      ['day'],
      ['user', 'tag:team'],
      [],
    ] as const
    for (const [s, [from, to]] of spans.entries())
      for (const [f, filter] of filters.entries()) {
        const groupBy = groupings[(2 * s + f) % groupings.length] ?? []
        const rows = await tested().usage.read({ ...filter, from, to, groupBy, limit: 1000 })
        assert.deepEqual(
          rows.map(({ groups, sums }) => [...groups, figures({ ...sums })].join('|')),
          expected(
            all.filter((call) => at(call, from, to) && isOf(call, filter)),
            groupBy,
          ),
          `${JSON.stringify(filter)} by ${groupBy}, minutes ${(from - start) / MINUTE} to ${(to - start) / MINUTE}`,
        )
      }
    assert.deepEqual((await ledger.check()).violations, [])
  })
}
