import type { CallLogEntry } from '../../core/call/index.ts'
import type { CallUsage } from '../../core/usage/index.ts'
import type { Settlement } from '../ledger.ts'

/** The outcome for the call. `unconfirmed`: it was not known in time whether the charge is stored; it stays queued. */
export type SettleOutcome = 'confirmed' | 'fenced' | 'unconfirmed'

/** The final outcome of a charge. `fenced`: the claim belongs to a later call, and nothing was charged. */
export type ChargeOutcome = 'confirmed' | 'fenced' | 'voided'

/** The bill of a call. Its functions are called when the ledger reads it, possibly several times. */
export interface Bill {
  /** The id under which the call is charged once. */
  readonly requestId: string
  /** The actual cost, in nano-units. */
  readonly amount: bigint
  /** The cost of the call for the operator, in nano-units; null or absent if that is not known. */
  readonly cost?: bigint | null
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The usage that the call adds to its hour. */
  readonly usage?: CallUsage | undefined
  /** Returns how the amount was computed, as JSON; the same each time. */
  basis(): string
  /** The claim to complete with the charge, on a ledger that settles records. */
  readonly claim: Settlement['claim']
  /** Returns the log entry to write with the charge, as of now. */
  readonly entry: ((this: Bill) => CallLogEntry | null) | null
  /** About how many bytes its entry takes. Defaults to 2048. */
  readonly bytes?: number
  /** Called once with the outcome, possibly long after the call; called again only if a stored charge is revoked. */
  onResolved?(outcome: ChargeOutcome): void
}
