import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RunningClaim } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { billedCall, COST, ENDING, sent, USAGE } from './billed-calls.ts'

describe('a call that is charged', () => {
  it('is charged once for what it used, and records how that came about', () => {
    const { call, billed, log, bills, used, close } = billedCall()
    assert.deepEqual([call.billing?.reserved, call.billing?.charged], [9n, null])
    assert.equal(billed.settle(ENDING), undefined)
    used()
    assert.equal(billed.settle(ENDING), undefined)
    assert.equal(billed.settle(ENDING), undefined)
    close(true)
    assert.deepEqual(log, [`settle ${COST}`])
    assert.equal(call.billing?.charged, COST)
    const items = [
      { unit: 'input', quantity: 2, price: '0.001' },
      { unit: 'request', quantity: 1, price: '0.000000005' },
    ]
    assert.deepEqual(JSON.parse(bills[0]?.basis() ?? ''), { line: 'line-0', source: 'measured', items })
    assert.deepEqual([bills[0]?.claim, bills[0]?.entry, bills[0]?.requestId], [null, null, call.id])
  })

  it('records what it cost the operator, where that is known, and what was used', () => {
    const { call, billed, bills, used } = billedCall()
    used()
    const served = call.servedBy as NonNullable<typeof call.servedBy>
    call.servedBy = { ...served, cost: { ...FREE, inputPerMillion: 500_000n } }
    billed.settle({ ...ENDING, outcome: { status: 200, errorCode: 'upstream_error', finish: 'interrupted' } })
    assert.deepEqual([call.billing?.charged, call.billing?.cost], [COST, 1n])
    const { usage, cost } = bills[0] ?? {}
    assert.deepEqual([usage?.inputTokens, usage?.outputTokens, usage?.failed, cost], [2, 3, 1, 1n])
    const unknown = billedCall()
    unknown.used()
    unknown.billed.settle(ENDING)
    assert.deepEqual([unknown.bills[0]?.cost, unknown.bills[0]?.usage?.failed], [null, 0])
  })

  it('is not charged where no line served it, or nothing was used', () => {
    for (const member of ['usage', 'servedBy'] as const) {
      const { call, billed, log, used, close } = billedCall()
      used()
      call[member] = null
      assert.equal(billed.settle(ENDING), undefined)
      close(true)
      assert.deepEqual([log, call.billing?.charged], [['release'], null])
    }
  })

  it('is charged no more than the account has, where it comes to more than was held', () => {
    const bounded = { unit: 'bounded', quantity: 1, price: -2n }
    for (const [amount, most, charged] of [
      [3n, 5n, 5n],
      [3n, undefined, COST],
      [COST, 5n, COST],
    ] as const) {
      const { call, billed, log, used } = billedCall({ amount, ...(most !== undefined && { most }) })
      used()
      billed.settle(ENDING)
      assert.deepEqual([log, call.billing?.charged], [[`settle ${charged}`], charged])
      const isBounded = charged < COST
      assert.deepEqual(call.billing?.items.slice(2), isBounded ? [bounded] : [])
      assert.equal(call.usage?.source, isBounded ? 'bounded' : 'measured')
    }
  })

  it('needs no ledger where it is free, nothing is held, and it hangs on no key', () => {
    const free = billedCall({ amount: 0n })
    free.call.usage = USAGE
    free.call.servedBy = { line: 'line-0', price: FREE }
    assert.equal(free.billed.settle(ENDING), undefined)
    assert.equal(free.call.billing?.charged, 0n)
    free.close(true)
    assert.deepEqual(free.log, ['release'])
    for (const options of [{ amount: 1n }, { amount: 0n, claim: {} }]) {
      const { call, billed, log } = billedCall(options)
      call.usage = USAGE
      call.servedBy = { line: 'line-0', price: FREE }
      billed.settle(ENDING)
      assert.deepEqual(log, ['settle 0'])
    }
  })

  it('is charged what it costs where nothing was held', () => {
    const { call, billed, log, used } = billedCall({ amount: 0n })
    used()
    billed.settle(ENDING)
    assert.deepEqual([log, call.billing?.charged], [[`settle ${COST}`], COST])
  })

  it('is charged what its own handler said, where that produced something', () => {
    const charged = (finish: 'completed' | 'interrupted' | 'failed' | 'refused', headersSent = false) => {
      const { call, billed, log, res, bills } = billedCall()
      call.charge(3n)
      if (headersSent) sent(res)
      billed.settle({ ...ENDING, outcome: { ...ENDING.outcome, finish } })
      if (bills[0]) {
        const items = [{ unit: 'own', quantity: 1, price: '0.000000003' }]
        assert.deepEqual(JSON.parse(bills[0].basis()), { items })
      }
      return log
    }
    const { call, billed, bills, used } = billedCall()
    used()
    call.charge(3n)
    billed.settle(ENDING)
    assert.deepEqual(Object.keys(JSON.parse(bills[0]?.basis() ?? '')), ['items'], 'a line was asked, too')
    assert.deepEqual(charged('completed'), ['settle 3'])
    assert.deepEqual(charged('interrupted', true), ['settle 3'])
    assert.deepEqual(charged('interrupted'), [])
    assert.deepEqual(charged('failed', true), [])
    assert.deepEqual(charged('refused'), [])
  })
})

describe('the key of a call that is charged', () => {
  it('is completed with the charge, for as long as it is kept', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 10_000 })
    const { call, billed, bills, claim, used } = billedCall({ settlesRecords: true, claim: {} })
    used()
    call.entryBy = 'ledger'
    billed.settle(ENDING)
    assert.deepEqual(bills[0]?.claim, { id: 'k', owner: 'o', keepUntil: 10_500 })
    assert.equal(bills[0]?.at, 10_000)
    assert.equal(claim?.state, 'settling')
    assert.equal(call.entryBy, 'written')
    assert.equal(bills[0]?.entry?.()?.status, 200)
    call.outcome = { status: 499, errorCode: 'client_closed_request', finish: 'interrupted' }
    assert.equal(bills[0]?.entry?.()?.status, 499, 'as of when it is written')
  })

  it('is left alone where the ledger keeps no records, or the store completes it', () => {
    const plain = billedCall({ claim: {} })
    plain.used()
    plain.call.entryBy = 'ledger'
    plain.billed.settle(ENDING)
    assert.deepEqual(
      [plain.bills[0]?.claim, plain.claim?.state, plain.call.entryBy],
      [null, 'running', 'ledger'],
    )
    const stored = billedCall({ claim: {}, settlesRecords: true })
    Object.assign(stored.call.idempotency as object, { completedByLedger: false })
    stored.used()
    stored.billed.settle(ENDING)
    assert.deepEqual([stored.bills[0]?.claim, stored.claim?.state], [null, 'running'])
  })

  it('becomes what the ledger says, and only where it was being settled', () => {
    const become = (
      outcome: 'confirmed' | 'fenced' | 'voided',
      state: RunningClaim['state'] = 'settling',
    ) => {
      const { billed, claim } = billedCall({ claim: { state } })
      billed.onResolved(outcome)
      return claim?.state
    }
    assert.deepEqual(
      [become('confirmed'), become('fenced'), become('voided')],
      ['completed', 'lost', 'released'],
    )
    for (const outcome of ['confirmed', 'fenced', 'voided'] as const)
      assert.equal(become(outcome, 'running'), 'running')
  })

  it('may be none', () => {
    for (const outcome of ['confirmed', 'fenced', 'voided'] as const) {
      const { call, billed, used } = billedCall()
      used()
      billed.settle(ENDING)
      call.entryBy = 'written'
      billed.onResolved(outcome)
      assert.equal(call.billing?.charged, outcome === 'confirmed' ? COST : null)
      assert.equal(call.entryBy, outcome === 'fenced' ? 'ledger' : 'written')
    }
  })

  it('that another call holds by now ends the call with the error of its holder', () => {
    const { call, billed, used, log } = billedCall({ outcome: 'fenced' })
    used()
    call.onAssertOwnsClaim(() => {
      throw new Error('lost')
    })
    assert.throws(() => billed.settle(ENDING), /^Error: lost$/)
    assert.deepEqual(log, [`settle ${COST}`])
  })

  it('keeps nothing of an answer that was not sent, where it was lost', () => {
    for (const headersSent of [false, true]) {
      const { billed, log, res } = billedCall({ claim: { state: 'settling' } })
      if (headersSent) sent(res)
      billed.onResolved('fenced')
      assert.deepEqual(log, headersSent ? [] : ['discard'])
    }
    const { call, billed, log } = billedCall({ claim: { state: 'settling' } })
    call.entryBy = 'writer'
    billed.onResolved('voided')
    assert.deepEqual(log, [], 'a refused call is repeated from its key')
    billed.onResolved('fenced')
    assert.equal(call.entryBy, 'writer')
  })
})
