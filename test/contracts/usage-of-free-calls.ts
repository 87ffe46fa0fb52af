import assert from 'node:assert/strict'
import { it } from 'node:test'
import { newRequestId } from '../../lib/core/call/index.ts'
import type { UsageStore } from '../../lib/core/usage/index.ts'
import type { CallStore } from '../../lib/middleware/call-log/index.ts'
import { entryAt } from './call-store.ts'
import { HOUR, START } from './usage-model.ts'

/** The usage of an account's calls that cost their caller nothing. */
export function usageOfFreeCalls(tested: () => { calls: CallStore; usage: UsageStore }): void {
  it('has the operator’s cost of a call that was free for its caller', async () => {
    const at = START + 200 * HOUR
    const figures = { currency: 'USD', reserved: '0', charged: '0', required: null, available: null }
    const billing = { ...figures, items: [], cost: '0.000000007' }
    const entry = entryAt(at, { account: 'free', billing })
    await tested().calls.append([entry, { ...entry, id: newRequestId(at) }])
    const query = { from: at - HOUR, to: at + HOUR, account: 'free', limit: 9 }
    for (const groupBy of [[], ['user']] as const) {
      const [row] = await tested().usage.read({ ...query, groupBy })
      assert.deepEqual([row?.sums.requests, row?.sums.charged, row?.sums.cost], [2, 0n, 14n])
    }
  })
}
