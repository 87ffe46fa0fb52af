import assert from 'node:assert/strict'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import type { CallUsage } from '../../../lib/core/usage/index.ts'
import type { BudgetPeriod } from '../../../lib/ledger/budgets/budget.ts'
import type { Settlement } from '../../../lib/ledger/index.ts'
import { type Bill, type ChargeOutcome, Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from './faulty-ledger.ts'
import { PoolProcess } from './pool-process.ts'

export const ONE = units(1)
export const CLAIM = { id: 'record', owner: 'req', keepUntil: 5 }
export const USAGE = { model: 'm' } as unknown as CallUsage
export const TEAM: BudgetPeriod = {
  budget: 'team',
  wallet: 'budget:team:1',
  scope: { account: 'acme', key: null, user: null, tag: 'team=a' },
  refused: 'key_quota_exhausted',
  endsAt: null,
}
export const entryOf = (status: number) => ({ id: 'req', status }) as unknown as CallLogEntry

/** A bill whose functions read it. */
export class FullBill implements Bill {
  readonly requestId = 'req'
  readonly amount = ONE
  readonly cost = 3n
  readonly at = 7
  readonly usage = USAGE
  readonly claim = CLAIM
  readonly resolved: ChargeOutcome[] = []
  readonly status: number

  constructor(status: number) {
    this.status = status
  }

  basis(): string {
    return `["${this.status}"]`
  }

  entry(): CallLogEntry {
    return entryOf(this.status)
  }

  onResolved(outcome: ChargeOutcome): void {
    this.resolved.push(outcome)
  }
}
/** A bill that says no more than it must. */
export const PLAIN: Bill = {
  requestId: 'req',
  amount: ONE,
  at: 7,
  basis: () => '[]',
  claim: null,
  entry: null,
}

/** A process with a call of a key and a budget, or of neither. */
export async function called({ isPlain = false, settlesRecords = true } = {}) {
  const shared = ledgerOf('100', { k: '50' })
  await shared.setLimit(TEAM.wallet, { limited: true, quota: units(50) })
  const process = new PoolProcess(shared, { settlesRecords })
  const claim = isPlain ? { key: null } : { key: 'k', budgets: [TEAM] }
  const held = await process.pool.reserve({ account: 'acme', amount: ONE, ...claim })
  assert.ok(held instanceof Reservation)
  const { ledger, clock } = process
  return {
    ...{ shared, process, ledger, clock, held },
    /** Returns all that was handed over, with the leases by their wallets. */
    handed: () => ledger.settled.flat().map(plainly),
    last: () => ledger.settled.flat().at(-1) as Settlement,
  }
}

function plainly({ draws, ...settlement }: Settlement) {
  return { ...settlement, draws: draws.map(({ wallet, amount }) => [wallet, amount]) }
}
