import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryLedger, type Settlement, type SettlementResult } from '../../../lib/ledger/index.ts'
import { chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { heldBytes } from '../../system/chaos/measures.ts'
import { ACCOUNTS, billedGateway } from './billed-gateway.ts'

const MiB = 1024 * 1024
const CALLS = 10

class AwayLedger extends MemoryLedger {
  isAway = false

  override settle(settlements: readonly Settlement[]): readonly SettlementResult[] {
    if (this.isAway) throw new Error('away')
    return super.settle(settlements)
  }
}

describe('a charge that waits longer than its call', () => {
  it('keeps no request body', { timeout: 60_000 }, async (t) => {
    const gate = Promise.withResolvers<void>()
    const upstream = await startUpstream(async (res) => {
      await gate.promise
      await stream(res, chatEvents(['Hello']))
    })
    t.after(() => upstream.close())
    const ledger = new AwayLedger(ACCOUNTS)
    t.after(() => {
      ledger.isAway = false
    })
    const gateway = await billedGateway(t, { lines: [{ url: upstream.url }], ledger })
    const before = await heldBytes()
    const body = { model: 'chat', messages: [{ role: 'user', content: 'x'.repeat(2 * MiB) }], stream: true }
    const calls = Array.from({ length: CALLS }, async () => {
      const answer = await gateway.post('/v1/chat/completions', body)
      await answer.text().catch(() => {})
    })
    await until(() => upstream.requests.length === CALLS)
    ledger.isAway = true
    gate.resolve()
    await Promise.all(calls)
    upstream.requests.length = 0
    const held = (await heldBytes()) - before
    ledger.isAway = false
    assert.equal((await gateway.books()).charges, CALLS)
    assert.ok(held < CALLS * MiB, `${Math.round(held / MiB)} MiB for ${CALLS} calls`)
  })
})
