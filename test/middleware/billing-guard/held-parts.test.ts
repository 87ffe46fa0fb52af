import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { type ChargeItem, type HeldPart, openCall } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import type { BudgetPeriod } from '../../../lib/ledger/budgets/budget.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { type WalletId, walletsOf } from '../../../lib/ledger/wallet.ts'
import { holdPart, type PartsOf, refuseUnpaid } from '../../../lib/middleware/billing-guard/billed-part.ts'
import { ledgerOf, units } from '../../ledger/support/faulty-ledger.ts'
import { PoolProcess, type PoolProcessOptions } from '../../ledger/support/pool-process.ts'
import { recordingLogger } from '../../support/app-server.ts'

const MINUTE = { unit: 'minute', quantity: 1, price: units(2) } as const
const DEPS = { handlerMs: 1000 }

/** A running call whose line costs half of a minute's price, and what was held and charged for it. */
async function running(options: PoolProcessOptions = {}, costs = true) {
  const shared = ledgerOf('10')
  const process = new PoolProcess(shared, options)
  const req = new IncomingMessage(new Socket())
  const call = openCall(req, new ServerResponse(req), { logger: recordingLogger() })
  const cost = { ...FREE, perMinute: units(1) }
  call.servedBy = { line: 'line-0', price: FREE, ...(costs && { cost }) }
  const bill: PartsOf = {
    ...{ reserved: null, charged: null, cost: null, required: null, available: null },
    ...{ items: [], own: undefined, parts: 0 },
  }
  const paidFrom = await process.admitted(units(1))
  return {
    ...{ call, bill, shared, process },
    hold: (item: ChargeItem) => holdPart(call, bill, paidFrom, item, DEPS),
    async held(item: ChargeItem = MINUTE) {
      return (await holdPart(call, bill, paidFrom, item, DEPS)) as HeldPart
    },
    async books() {
      paidFrom.release()
      await process.pool.close()
      const { spent, leased } = await shared.check()
      return [spent, leased]
    },
  }
}

describe('a part of a call that goes on', () => {
  it('is a charge of its own, which says what it is', async () => {
    const { held, call, process, books } = await running()
    for (let i = 0; i < 2; i++) assert.equal(await (await held()).charge(), undefined)
    const charges = process.ledger.settled.flat()
    assert.deepEqual(
      charges.map(({ requestId, amount, cost, claim, entry }) => [requestId, amount, cost, claim, entry]),
      [1, 2].map((part) => [`${call.id}.${part}`, units(2), units(1), null, null]),
    )
    const items = [{ unit: 'minute', quantity: 1, price: '2' }]
    assert.deepEqual(JSON.parse(charges[0]?.basis ?? ''), { line: 'line-0', source: 'measured', items })
    assert.ok(Math.abs((charges[0]?.at ?? 0) - Date.now()) < 60_000)
    assert.deepEqual([charges[0]?.usage?.requests, charges[0]?.usage?.line], [0, 'line-0'])
    assert.deepEqual(await books(), [units(4), 0n])
  })

  it('counts to what the call is charged for, and costs', async () => {
    const { held, bill, books } = await running()
    const rows = [
      [MINUTE, units(2), units(1)],
      [{ ...MINUTE, quantity: 2 }, units(6), units(3)],
      [{ ...MINUTE, price: units(1) }, units(7), units(4)],
      [{ ...MINUTE, unit: 'second', price: units(1) }, units(8), units(4)],
    ] as const
    for (const [item, charged, cost] of rows) {
      await (await held(item)).charge()
      assert.deepEqual([bill.charged, bill.cost], [charged, cost])
    }
    assert.deepEqual(bill.items, [
      { ...MINUTE, quantity: 3 },
      { ...MINUTE, price: units(1) },
      { ...MINUTE, unit: 'second', price: units(1) },
    ])
    assert.deepEqual(await books(), [units(8), 0n])
  })

  it('has no known cost where its line has none, or there is no line', async () => {
    for (const line of ['line-0', undefined]) {
      const { held, bill, process, call } = await running({}, false)
      if (line === undefined) call.servedBy = null
      await (await held()).charge()
      assert.deepEqual([bill.charged, bill.cost], [units(2), null])
      const [charge] = process.ledger.settled.flat()
      assert.equal(charge?.cost ?? null, null)
      assert.equal(JSON.parse(charge?.basis ?? '').line, line)
    }
  })

  it('costs nothing where it is released', async () => {
    const { held, bill, books } = await running()
    const part = await held()
    part.release()
    assert.deepEqual([bill.charged, bill.items], [null, []])
    assert.deepEqual(await books(), [0n, 0n])
  })

  it('is refused where the account does not have it, and only the log contains the amounts', async () => {
    const { hold, bill, call, books } = await running()
    const refused = await hold({ ...MINUTE, price: units(11) })
    assert.ok(refused instanceof GatewayError)
    assert.equal(refused.code, 'insufficient_balance')
    assert.equal(call.refusal, refused)
    assert.deepEqual([bill.required, bill.available, bill.budget], [units(11), units(10), undefined])
    assert.deepEqual([bill.charged, bill.parts, bill.items], [null, 0, []])
    assert.deepEqual(await books(), [0n, 0n])
  })

  for (const [onStoreError, code] of [
    ['hold', 'billing_unavailable'],
    ['deliver', undefined],
  ] as const)
    it(`whose charge is not confirmed ends the call, or not: ${onStoreError}`, async () => {
      const { held, process, bill, books } = await running({ onStoreError })
      const part = await held()
      process.ledger.faults.set('settle', 'fails')
      const charging = part.charge()
      await process.clock.advance(3000)
      const refusal = await charging
      assert.equal(refusal?.code, code)
      if (refusal) assert.match(refusal.message, /so the session ends\. Its parts until now are charged/)
      assert.equal(bill.charged, units(2), 'it stands')
      process.ledger.mend()
      await process.clock.advance(3000)
      assert.deepEqual(await books(), [units(2), 0n])
    })
})

describe('a part of a call with a key and a budget', () => {
  const BUDGET: BudgetPeriod = {
    budget: 'monthly',
    wallet: 'budget:monthly:1',
    scope: { account: 'acme', key: null, user: null, tag: 'team=red' },
    refused: 'key_quota_exhausted',
    endsAt: null,
  }
  const PAYERS: readonly WalletId[] = walletsOf({ account: 'acme', key: 'k', budgets: [BUDGET.wallet] })

  /** A call that was charged one unit for a part, of a key and a budget with these amounts; and what a further one gets. */
  async function furtherPart(quota: number, budget: number) {
    const shared = ledgerOf('100', { k: `${quota}` })
    await shared.setLimit(BUDGET.wallet, { limited: true, quota: units(budget) })
    const { pool } = new PoolProcess(shared)
    const paidFrom = await pool.reserve({ account: 'acme', key: 'k', amount: units(1), budgets: [BUDGET] })
    assert.ok(paidFrom instanceof Reservation)
    const req = new IncomingMessage(new Socket())
    const call = openCall(req, new ServerResponse(req), { logger: recordingLogger() })
    const bill: PartsOf = {
      ...{ reserved: null, charged: null, cost: null, required: null, available: null },
      ...{ items: [], own: undefined, parts: 0 },
    }
    const hold = (price: bigint) => holdPart(call, bill, paidFrom, { ...MINUTE, price }, DEPS)
    const part = (await hold(units(1))) as HeldPart
    assert.equal(await part.charge(), undefined)
    paidFrom.release()
    const refused = await hold(units(4))
    await pool.close()
    const wallets = await shared.wallets(PAYERS)
    return { refused, bill, spent: wallets.map(({ wallet, spent }) => [wallet, spent]) }
  }

  it('is charged to all of them', async () => {
    const { spent } = await furtherPart(10, 10)
    assert.deepEqual(
      spent,
      PAYERS.map((wallet) => [wallet, units(1)]),
    )
  })

  for (const [quota, budget, named] of [
    [4, 10, undefined],
    [10, 4, 'monthly'],
  ] as const)
    it(`is refused by the ${named === undefined ? 'key' : 'budget'}, although the account has more`, async () => {
      const { refused, bill } = await furtherPart(quota, budget)
      assert.ok(refused instanceof GatewayError)
      assert.equal(refused.code, 'key_quota_exhausted')
      assert.deepEqual([bill.required, bill.available, bill.budget], [units(4), units(3), named])
      assert.equal(bill.charged, units(1), 'nothing was charged for the part that was refused')
    })
})

describe('a refusal for want of money', () => {
  const refusal = { refused: 'insufficient_balance', required: 7n, available: null } as const
  const period = { budget: 'monthly' } as NonNullable<Parameters<typeof refuseUnpaid>[2]['budget']>

  it('names the budget that is used up, in the words of the budgets', async () => {
    const asked: unknown[] = []
    const budgets = {
      refusal(...given: unknown[]) {
        asked.push(given)
        return { message: 'The budget is used up.' }
      },
    }
    const { call, bill } = await running()
    const plain = refuseUnpaid(call, bill, refusal, { ...DEPS, budgets })
    assert.deepEqual([asked, bill.budget, bill.required, bill.available], [[], undefined, 7n, null])
    const told = refuseUnpaid(call, bill, { ...refusal, budget: period }, { ...DEPS, budgets })
    assert.deepEqual([told.message, told.code], ['The budget is used up.', 'insufficient_balance'])
    assert.notEqual(told.message, plain.message)
    assert.deepEqual([asked, bill.budget], [[['insufficient_balance', period]], 'monthly'])
    const silent = refuseUnpaid(call, bill, { ...refusal, budget: period }, DEPS)
    assert.equal(silent.message, plain.message)
  })
})
