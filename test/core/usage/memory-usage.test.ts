import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HOUR_MS, MemoryUsageStore } from '../../../lib/core/usage/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { usageContract } from '../../contracts/usage.ts'

usageContract('memory', async () => {
  const ledger = new MemoryLedger()
  const calls = new MemoryCallStore({ usage: ledger.usage })
  return { ledgers: [ledger], calls, usage: ledger.usage, close: async () => {} }
})

describe('usage in memory', () => {
  it('counts each call in its hour, in whatever order calls come', async () => {
    const usage = new MemoryUsageStore()
    for (const [hour, amount] of [
      [6, 1n],
      [5, 10n],
      [7, 100n],
      [6, 1000n],
    ] as const)
      usage.add({ account: 'acme', key: 'k', amount, at: hour * HOUR_MS })
    const rows = await usage.read({ from: 0, to: 9 * HOUR_MS, groupBy: ['hour'], limit: 9 })
    assert.deepEqual(
      rows.map(({ groups: [hour], sums }) => [Number(hour) / HOUR_MS, sums.charged]),
      [
        [5, 10n],
        [6, 1001n],
        [7, 100n],
      ],
    )
  })
})
