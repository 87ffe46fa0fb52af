import {
  amountOf,
  type BillingTrace,
  type ChargeItem,
  type HeldPart,
  itemOf,
  type OpenCall,
} from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { type CallUsage, usageOfPart } from '../../core/usage/index.ts'
import type { Budgets } from '../../ledger/budgets/budgets.ts'
import { type Bill, Reservation, type ReserveRefusal } from '../../ledger/pool/reservation.ts'

/** The bill of a call, with what its parts add up to. */
export interface PartsOf extends BillingTrace {
  /** The number of parts that were held. */
  parts: number
}

export interface BilledDeps {
  /** How long the reservation stays for a handler whose caller has left, in milliseconds. */
  readonly handlerMs: number
  readonly budgets?: Pick<Budgets, 'refusal'> | undefined
}

/**
 * Holds money for a further part of a call, such as the next minute of a WebSocket. Each part is a charge of its own, so
 * that a process that dies loses none that has been charged.
 */
export async function holdPart(
  call: OpenCall,
  bill: PartsOf,
  paidFrom: Reservation,
  item: ChargeItem,
  deps: BilledDeps,
): Promise<HeldPart | GatewayError> {
  const held = await paidFrom.more(amountOf([item]))
  return held instanceof Reservation
    ? new BilledPart(call, bill, held, item)
    : refuseUnpaid(call, bill, held, deps)
}

/** Refuses a call, and writes the amounts to the call log. The caller does not see them. */
export function refuseUnpaid(
  call: OpenCall,
  bill: BillingTrace,
  { refused, required, available, budget }: ReserveRefusal,
  { budgets }: BilledDeps,
): GatewayError {
  bill.required = required
  bill.available = available
  if (budget) bill.budget = budget.budget
  return call.refuse(refused, budget && budgets?.refusal(refused, budget))
}

/** The message to a caller whose session ends although it has money. */
const UNCONFIRMED =
  'The charge of a part could not be confirmed in time, so the session ends. Its parts until now are charged.'

class BilledPart implements Bill, HeldPart {
  readonly requestId: string
  readonly amount: bigint
  readonly cost: bigint | null
  readonly at = Date.now()
  readonly claim = null
  readonly entry = null
  readonly usage: CallUsage
  readonly #call: OpenCall
  readonly #bill: PartsOf
  readonly #held: Reservation
  readonly #item: ChargeItem

  constructor(call: OpenCall, bill: PartsOf, held: Reservation, item: ChargeItem) {
    this.requestId = `${call.id}.${++bill.parts}`
    this.amount = held.amount
    this.cost = costOfPart(call, item)
    this.usage = usageOfPart(call)
    this.#call = call
    this.#bill = bill
    this.#held = held
    this.#item = item
  }

  basis(): string {
    return JSON.stringify({
      line: this.#call.servedBy?.line,
      source: 'measured',
      items: [itemOf(this.#item)],
    })
  }

  async charge(): Promise<GatewayError | undefined> {
    const bill = this.#bill
    // At once: the call may end, and be logged, before the ledger has answered.
    bill.charged = (bill.charged ?? 0n) + this.amount
    bill.items = added(bill.items, this.#item)
    if (this.cost !== null) bill.cost = (bill.cost ?? 0n) + this.cost
    const outcome = await this.#held.settle(this)
    const isLost = outcome === 'unconfirmed' && this.#held.onStoreError === 'hold'
    return isLost ? this.#call.refuse('billing_unavailable', { message: UNCONFIRMED }) : undefined
  }

  release(): void {
    this.#held.release()
  }
}

/** Returns what the part costs the operator; null if that is not known. */
function costOfPart({ servedBy }: OpenCall, item: ChargeItem): bigint | null {
  if (item.unit !== 'minute' || !servedBy?.cost) return null
  return amountOf([{ ...item, price: servedBy.cost.perMinute }])
}

/** Adds an item to those of the same unit and price. */
function added(items: readonly ChargeItem[], item: ChargeItem): readonly ChargeItem[] {
  const same = items.findIndex(({ unit, price }) => unit === item.unit && price === item.price)
  if (same < 0) return [...items, item]
  return items.map((each, i) => (i === same ? { ...each, quantity: each.quantity + item.quantity } : each))
}
