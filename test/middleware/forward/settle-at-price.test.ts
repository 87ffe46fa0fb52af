import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Call } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { settleAtPrice } from '../../../lib/middleware/forward/settle-at-price.ts'

const OUTCOME = { status: 200, errorCode: null, finish: 'completed' } as const
const UNUSED = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const

/** A call, and what is noted of it by the time that it is settled. */
function settling(entryBy: Call['entryBy'], settled: () => Promise<void> = async () => {}) {
  const log: unknown[] = []
  const call = {
    usage: null,
    servedBy: null,
    entryBy,
    async settle(settlement: unknown) {
      log.push([settlement, call.usage, call.servedBy, call.entryBy])
      await settled()
    },
    prove: () => void log.push('proved'),
  }
  return { call: call as unknown as Call, log }
}

describe('a success that is charged at the price of its rule', () => {
  it('has used nothing but its first minute, if minutes have a price', async () => {
    for (const [perMinute, usage] of [
      [0n, UNUSED],
      [1n, { ...UNUSED, minutes: 1 }],
    ] as const) {
      const servedBy = { line: 'l', price: { ...FREE, perMinute }, cost: undefined }
      const { call, log } = settling(null)
      await settleAtPrice(call, servedBy, OUTCOME)
      assert.deepEqual(log, [[{ outcome: OUTCOME, unsent: null }, usage, servedBy, null], 'proved'])
    }
  })

  it('leaves its log entry to the end of the call, which the charge does not know', async () => {
    for (const [before, after] of [
      ['ledger', 'writer'],
      ['writer', 'writer'],
      ['written', 'written'],
      [null, null],
    ] as const) {
      const { call, log } = settling(before)
      await settleAtPrice(call, { line: 'l', price: FREE, cost: undefined }, OUTCOME)
      assert.equal((log[0] as unknown[])[3], after)
    }
  })

  it('proves nothing where it cannot be charged', async () => {
    const refusal = new GatewayError('billing_unavailable')
    const { call, log } = settling(null, () => Promise.reject(refusal))
    await assert.rejects(settleAtPrice(call, { line: 'l', price: FREE, cost: undefined }, OUTCOME), refusal)
    assert.equal(log.length, 1)
  })
})
